"""A step of the teardown."""

from dataclasses import dataclass

from ops.account.stacks import LIFT_PROTECTION, Stack
from training_cluster.stack_names import STACK_IDS


@dataclass(frozen=True, kw_only=True)
class Step:
    """Commands that are typed together."""

    title: str
    commands: tuple[str, ...]
    is_data_lost: bool = False


def destroy_stack_commands(stack: Stack | None, *flags: str) -> tuple[str, ...]:
    """Return the commands that delete one of the shared stacks; none without it."""
    if stack is None:
        return ()
    context = "".join(f" -c {flag}" for flag in flags)
    unprotect = (f"{LIFT_PROTECTION} {stack.name}",) if stack.is_protected else ()
    return (*unprotect, f"npx cdk destroy {STACK_IDS[stack.name]}{context}")
