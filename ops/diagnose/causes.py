"""The causes that are known, from causes.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ops.diagnose.texts import Kind

CAUSES = Path(__file__).with_name("causes.yaml")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


class Pattern(BaseModel):
    """How a cause shows in one line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    has: str = Field(min_length=4)
    """Stands in the line as it is. It keeps most lines from the regular expression, which takes longer."""
    match: str | None = None
    """Is found in the line, too. Its named groups fill the mend's placeholders."""
    weight: int = Field(ge=1, le=100)
    """How surely the cause is the one to mend: 90 and more where the line says it in so many words."""
    where: tuple[Kind, ...] = ("event", "log")

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            re.compile(value)
        return value


class Cause(BaseModel):
    """Something that goes wrong, and what to do about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str
    patterns: tuple[Pattern, ...] = Field(min_length=1)
    explains: tuple[str, ...] = ()
    """Causes that are mere consequences where this one is found."""
    mend: tuple[str, ...] = Field(min_length=1)
    """What to type. A line with a {placeholder} is left out where no evidence fills it."""
    why: str
    source: str

    def mend_with(self, groups: Mapping[str, str]) -> tuple[str, ...]:
        """The lines that can be filled."""
        return tuple(
            _PLACEHOLDER.sub(lambda found: groups[found[1]], line)
            for line in self.mend
            if placeholders(line) <= set(groups)
        )


def placeholders(line: str) -> set[str]:
    """Names that stand in a line of a mend."""
    return set(_PLACEHOLDER.findall(line))


@cache
def load_causes() -> dict[str, Cause]:
    """All causes by id, in the file's order."""
    rows = [Cause.model_validate(row) for row in yaml.safe_load(CAUSES.read_text(encoding="utf-8"))]
    return {cause.id: cause for cause in rows}
