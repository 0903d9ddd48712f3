"""A guarded value, apart from the guard: `trainctl plan` reads values without importing the CDK."""

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A value whose change may make CloudFormation replace what holds data."""

    value: str
    """Value of the flag, which may be a token; "" where the app creates the resource."""
    policy: Literal["changes", "alone", "grows", "adopts", "given", "without clusters", "never"]
    """The change that the guard allows: `changes`, any; `alone`, any, but with no other value; `grows`, to a
    larger number, and alone; `adopts`, from "" to an id, the own resource being retained; `given`, none,
    because the deploy leaves the flag out (`if_given`); `without clusters`, any, while no cluster exists;
    `never`, none.
    """
    safe_way: str = ""
    """Text of what to type instead, in a sentence or two; `{old}` and `{new}` are filled in."""
    note: str = ""
    """Effect of a change that is allowed, for `trainctl plan`."""

    def as_property(self) -> dict[str, str]:
        """Return the value as the guard's function receives it (assets/guard)."""
        return {"value": self.value, "may": self.policy, "safe_way": self.safe_way}


def if_given(flag: str, flags: BaseModel, guarded: Guarded) -> Guarded:
    """Return the value of a flag, which the guard keeps as it is where the deploy leaves the flag out."""
    if flag in flags.model_fields_set:
        return guarded
    safe_way = f"Type -c {flag}={{old}}, or -c {flag}= for the default"
    return replace(guarded, policy="given", safe_way=safe_way)
