"""The rules of rules.yaml."""

import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ops.lint.shell import Kind, Subject
from training_cluster.catalog.yaml_file import read_yaml

RULES = Path(__file__).with_name("rules.yaml")


class Rule(BaseModel):
    """One rule: its problem, patterns and replacement. Patterns are regular expressions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    kinds: tuple[Kind, ...] = Field(min_length=1)
    match: str
    """Pattern of a subject that may break the rule."""
    requires: tuple[str, ...] = ()
    """Patterns of which all must be in the subject; then it does not break the rule."""
    only_with: str | None = None
    """Pattern that must be elsewhere in the script for the rule to apply."""
    unless_with: str | None = None
    """Pattern elsewhere in the script with which the rule does not apply."""
    problem: str
    source: str
    instead: str

    @field_validator("match", "requires", "only_with", "unless_with")
    @classmethod
    def _compiles(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        for pattern in (value,) if isinstance(value, str) else value or ():
            re.compile(pattern)
        return value

    def find(self, subjects: list[Subject]) -> list[Subject]:
        """Return the subjects that break the rule."""
        texts = [each.text for each in subjects]
        if self.only_with and not _any(self.only_with, texts):
            return []
        if self.unless_with and _any(self.unless_with, texts):
            return []
        return [each for each in subjects if each.kind in self.kinds and self._breaks(each.text)]

    def _breaks(self, text: str) -> bool:
        if not re.search(self.match, text):
            return False
        return not self.requires or not all(re.search(each, text) for each in self.requires)


def _any(pattern: str, texts: list[str]) -> bool:
    return any(re.search(pattern, text) for text in texts)


@cache
def load_rules() -> dict[str, Rule]:
    """Load every rule, by id, in the order of the file."""
    rows = [Rule.model_validate(row) for row in read_yaml(RULES)]
    return {rule.id: rule for rule in rows}
