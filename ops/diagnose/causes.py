"""The known causes, from causes.yaml."""

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ops.diagnose.texts import Kind
from training_cluster.catalog.yaml_file import read_yaml

CAUSES = Path(__file__).with_name("causes.yaml")
# Placeholders in commands: whoever writes to a log could name a file $(COMMAND).
_TYPED = frozenset(("file", "folder", "object", "url"))
# Characters that stand for themselves, and that no quantifier follows.
_LITERAL = re.compile(r"(?:(?:[\w ,:/'\"@%#=<>&;~!-]|\\[.()\[\]])(?![?*+{]))+")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


class Pattern(BaseModel):
    """A pattern that a cause leaves in one line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    has: str = Field(min_length=4)
    """Literal text of the line. It spares most lines the regular expression, which takes longer. By default,
    the text with which a `match` without | begins."""
    match: str | None = None
    """Regular expression that the line must match, too. Its named groups fill the placeholders of `mend`."""
    weight: int = Field(ge=1, le=100)
    """Confidence that this cause is the one to fix: 90 and more if the line names it literally."""
    where: tuple[Kind, ...] = ("event", "log")

    @model_validator(mode="before")
    @classmethod
    def _with_text(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {"has": _beginning(row.get("match") or "")} | row

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            re.compile(value)
        return value


class Cause(BaseModel):
    """A known failure and its remedy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str
    patterns: tuple[Pattern, ...] = Field(min_length=1)
    is_own_sentence: bool = False
    """True for the cause that stands for any sentence with which our scripts end a job. Where another cause
    matches the same line, that cause is found instead, and it comes before all that other lines show."""
    explains: tuple[str, ...] = ()
    """Causes that are mere consequences if this one is found."""
    mend: tuple[str, ...] = Field(min_length=1)
    """Commands to type. A line with a {placeholder} is omitted if no evidence fills it. {deploy} is always
    filled: with the deploy of the cluster."""
    why: str
    source: str

    @field_validator("patterns", mode="before")
    @classmethod
    def _one_text_each(cls, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Split a row of the file with several texts of one weight."""
        listed = ((row, row["has"] if isinstance(row.get("has"), list) else [row.get("has")]) for row in rows)
        return [row | ({"has": has} if has else {}) for row, texts in listed for has in texts]

    def mend_with(self, groups: Mapping[str, str]) -> tuple[str, ...]:
        """Return the lines whose placeholders are all filled; paths and addresses are quoted for a shell."""
        # A log could name a file {deploy}: a command in its place would end the quotes.
        texts = {name: text.replace("{deploy}", "{ deploy }") for name, text in groups.items()}
        typed = {name: shlex.quote(text) if name in _TYPED else text for name, text in texts.items()}
        return tuple(
            _PLACEHOLDER.sub(lambda found: typed.get(found[1], found[0]), line)
            for line in self.mend
            if placeholders(line) <= set(groups)
        )


def _beginning(match: str) -> str:
    """Return the literal text that each match of an expression begins with."""
    found = _LITERAL.match(match)
    return re.sub(r"\\(.)", r"\1", found[0]) if found and "|" not in match else ""


def placeholders(line: str) -> set[str]:
    """Return the names of the placeholders in a line of `mend` that the evidence fills."""
    return set(_PLACEHOLDER.findall(line)) - {"deploy"}


@cache
def load_causes() -> dict[str, Cause]:
    """Load every cause, by id, in the order of the file."""
    rows = [Cause.model_validate(row) for row in read_yaml(CAUSES)]
    return {cause.id: cause for cause in rows}
