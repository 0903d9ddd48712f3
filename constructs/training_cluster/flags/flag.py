"""Declaration of a context flag: a field with its allowed values, its example and the effect of a change."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field
from pydantic.fields import FieldInfo

from training_cluster.catalog.family import AWS_ID

Default = TypeVar("Default")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a flag that pydantic has no place for."""

    takes: str | None = None
    """Allowed values in words, for errors and docs/flags.md; None if the type is enough."""
    on_change: str | None = None
    """Effect of a change on a deployed cluster, for docs/changes.md; None for the answer of ParallelCluster's
    library (tools/docs/flag_changes.py) or of a guard."""
    is_compared: bool = True
    """False keeps the flag out of `trainctl plan`: no deployed resource shows its value, or it only controls
    the deploy itself."""
    refused_with: str | None = None
    """Flag with the id of an existing resource, for a flag of a new one alone."""
    is_file: bool = False
    """True for the path of a YAML file."""
    is_remembered: bool = True
    """False for a flag of one deploy, which the next one neither repeats nor misses."""


def flag(
    default: Default,
    *,
    description: str,
    example: str | None = None,
    pattern: str | None = None,
    ge: int | None = None,
    le: int | None = None,
    **facts: Any,
) -> Default:
    """Declare a field of a group of flags.

    Args:
        description: meaning, for docs/flags.md.
        example: value to type after an error. Default: the default, unless it is None or not safe to type.
        pattern, ge, le: pydantic's own.
        facts: fields of Facts.
    """
    if facts.get("is_file"):
        facts["takes"] = "the path of a YAML file, in the folder of cdk.json or absolute"
    extra: dict[str, Any] = {"facts": Facts(**facts)}
    examples = [example] if example else None
    limits: dict[str, Any] = {"pattern": pattern, "ge": ge, "le": le}
    field: Default = Field(
        default, description=description, examples=examples, json_schema_extra=extra, **limits
    )
    return field


def id_flag(kind: str, what: str, *, description: str) -> str | None:
    """Declare a field with the id of an existing resource; its kind begins the id, such as vpc."""
    takes, example = f"{what} ({kind}- and 8 or 17 hex digits)", f"{kind}-0123456789abcdef0"
    pattern = rf"^{kind}-{AWS_ID}$"
    found: str | None = flag(None, pattern=pattern, takes=takes, example=example, description=description)
    return found


def facts_of(info: FieldInfo) -> Facts:
    """Return the facts of a flag."""
    assert isinstance(info.json_schema_extra, dict), "each flag is declared with flag()"
    facts: Any = info.json_schema_extra["facts"]
    return facts  # type: ignore[no-any-return]


def example_of(info: FieldInfo) -> object:
    """Return a value of a flag that is safe to type."""
    return info.examples[0] if info.examples else info.default
