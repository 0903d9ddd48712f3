"""Messages about flags: the values that they take, and the mistakes in the values given."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from training_cluster.flags.flag import example_of, facts_of
from training_cluster.problems import Contradiction, did_you_mean


def literal_choices(annotation: Any) -> list[str]:
    """Return the words of a Literal, or of a Literal that may be None; none for other types."""
    inner = [annotation, *get_args(annotation)]
    return [word for each in inner for word in get_args(each) if isinstance(word, str)]


def allowed_values(info: FieldInfo) -> str:
    """Name the values that a flag takes: in its own words, else from its type."""
    if words := facts_of(info).takes or ", ".join(literal_choices(info.annotation)):
        return words
    low, high = (next((getattr(m, k) for m in info.metadata if hasattr(m, k)), None) for k in ("ge", "le"))
    return f"a whole number from {low}" + (f" to {high}" if high is not None else "")


def explain(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """Turn pydantic's findings into one message: flag, value, what is allowed, what to type."""
    lines = [_headline(error.error_count())]
    for problem in error.errors():
        flag = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            lines.append(f"  {flag}: no such flag.{did_you_mean(flag, fields)}")
            lines.append(f"    flags:   {', '.join(fields)} (docs/flags.md)")
            continue
        own_words = problem["msg"].removeprefix("Value error, ")
        said = own_words if problem["type"] == "value_error" else "not allowed"
        lines.append(f"  {flag}={problem['input']}: {said}")
        lines.append(f"    allowed: {allowed_values(fields[flag])}")
        lines.append(f"    type:    -c {flag}={example_of(fields[flag])}")
    return "\n".join(lines)


def explain_contradictions(found: Sequence[Contradiction]) -> str:
    """Name the values that contradict each other, and what to type instead."""
    lines = [_headline(len(found))]
    for contradiction in found:
        lines.append(f"  {contradiction.problem}")
        lines.append(f"    type:    {contradiction.mend}")
    return "\n".join(lines)


def _headline(count: int) -> str:
    return f"{count} problem{'s' if count > 1 else ''} in the context flags, nothing was done:"
