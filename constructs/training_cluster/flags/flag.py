"""Declaration of a context flag: a field with its allowed values, its example and the effect of a change."""

from typing import TypeVar

from pydantic import Field, JsonValue
from pydantic.fields import FieldInfo

_TAKES, _ON_CHANGE, _IS_COMPARED, _REFUSED_WITH = "takes", "on_change", "is_compared", "refused_with"
_IS_FILE, _IS_REMEMBERED = "is_file", "is_remembered"
Default = TypeVar("Default")


def flag(
    default: Default,
    *,
    description: str,
    takes: str | None = None,
    example: str | None = None,
    on_change: str | None = None,
    is_compared: bool = True,
    refused_with: str | None = None,
    is_file: bool = False,
    is_remembered: bool = True,
    pattern: str | None = None,
    ge: int | None = None,
    le: int | None = None,
) -> Default:
    """Declare a field of a group of flags.

    Args:
        description: meaning, for docs/flags.md.
        takes: allowed values in words, for errors and docs/flags.md. Default: from the type.
        example: value to type after an error. Default: the default, unless it is None or not safe to type.
        on_change: effect of a change on a deployed cluster, for docs/changes.md. Default: the answer of the
            ParallelCluster library (tools/docs/flag_changes.py) or of a guard.
        is_compared: False keeps the flag out of `trainctl plan`: no deployed resource shows its value, or
            it only controls the deploy itself.
        refused_with: flag with the id of an existing resource; this flag is for a new one alone.
        is_file: True for the path of a YAML file, in the folder of cdk.json or absolute.
        is_remembered: False for a flag of one deploy, which the next one neither repeats nor misses.
        pattern, ge, le: pydantic's own.
    """
    extra: dict[str, JsonValue] = {
        _TAKES: "the path of a YAML file, in the folder of cdk.json or absolute" if is_file else takes,
        _ON_CHANGE: on_change,
        _IS_COMPARED: is_compared,
        _REFUSED_WITH: refused_with,
        _IS_FILE: is_file,
        _IS_REMEMBERED: is_remembered,
    }
    field: Default = Field(
        default,
        description=description,
        examples=[example] if example else None,
        json_schema_extra=extra,
        pattern=pattern,
        ge=ge,
        le=le,
    )
    return field


def takes_in_words(info: FieldInfo) -> str | None:
    """Return the words for a flag's allowed values; None if its type is enough."""
    return _text(info, _TAKES)


def example_of(info: FieldInfo) -> object:
    """Return a value of a flag that is safe to type."""
    return info.examples[0] if info.examples else info.default


def effect_of_change(info: FieldInfo) -> str | None:
    """Return the effect of a flag's change; None if the ParallelCluster library or a guard decides it."""
    return _text(info, _ON_CHANGE)


def refused_with(info: FieldInfo) -> str | None:
    """Return the flag with the id of an existing resource, for a flag of a new one; None for others."""
    return _text(info, _REFUSED_WITH)


def is_compared(info: FieldInfo) -> bool:
    """Return True if `trainctl plan` compares a flag with its deployed value."""
    return bool(_extra(info)[_IS_COMPARED])


def is_file(info: FieldInfo) -> bool:
    """Return True if a flag is the path of a file."""
    return bool(_extra(info)[_IS_FILE])


def is_remembered(info: FieldInfo) -> bool:
    """Return True if a deploy has to repeat a flag of the last one, or to say that it goes."""
    return bool(_extra(info)[_IS_REMEMBERED])


def _text(info: FieldInfo, key: str) -> str | None:
    text = _extra(info)[key]
    return text if isinstance(text, str) else None


def _extra(info: FieldInfo) -> dict[str, JsonValue]:
    assert isinstance(info.json_schema_extra, dict), "each flag is declared with flag()"
    return info.json_schema_extra
