"""`python -m tools.prose`: report phrases that CONTRIBUTING.md bans from prose, comments and messages.

A native reader stops at these phrases, which no maintained linter knows. The table of examples in
CONTRIBUTING.md is left out.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training_cluster.paths import ROOT

_FILES = ("*.md", "*.py", "*.sh", "*.slurm", "*.yaml", "Makefile")
_NOT_OURS = ("tests/", "docs/adr/", "CHANGELOG.md", "ops/diagnose/causes.yaml")
"""Tests quote, decisions and the changelog are history, and causes quote users' logs."""
_EXAMPLES = re.compile(r"^\| not \| but \|\n(\|.*\n)*", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A banned phrase, and what to write instead."""

    phrase: str
    """Regular expression, which ignores the case."""
    instead: str


RULES = (
    Rule(phrase=r"\bwhat (it|they) (is|are) at\b", instead="the operation in progress"),
    Rule(phrase=r"\bstands?\b(?!-| for\b)", instead="exists, is, remains, is listed"),
    Rule(phrase=r"\blies? (in|under|there|at|below|beside)\b|\bit lies\b", instead="is stored, is in"),
    Rule(
        phrase=r"\bof one's own\b|(?<!this )(?<!another )(?<!other )(?<!first )(?<!last )\bone's\b",
        instead="your own, custom",
    ),
    Rule(phrase=r"\bfor want of\b", instead="because ... is missing"),
    Rule(phrase=r"\bbesides\b", instead="also, in addition to, other than"),
    Rule(phrase=r"\b(comes?|came) to (its|an|their) end\b", instead="finishes"),
    Rule(phrase=r"\bnothing of (it|them)\b", instead="none of it, not"),
    Rule(phrase=r"\ball the same\b", instead="nevertheless, still"),
    Rule(phrase=r"\bsaid aloud\b|\bto hear it\b", instead="reported, for notification"),
    Rule(phrase=r"\ba person types\b|\bone types\b", instead="you type"),
    Rule(phrase=r"\b(go(es)?|going) on (where|from|with|by hand|behind|until)\b", instead="continues"),
    Rule(phrase=r"\bbeside (ours|that of)\b", instead="in addition to"),
    Rule(phrase=r"\bhow far it is\b", instead="its progress"),
    Rule(phrase=r"\b(of|one of) (ours|yours)\b", instead="the app's, your own, existing"),
    Rule(
        phrase=r"(?<!there )\b(is|are) no "
        r"(name|number|date|step|image|list|manifest|address|multiple|id|file|folder)\b",
        instead="is not a ...",
    ),
    Rule(phrase=r"\bmend(s|ed|ing)\b|\bmend (it|that|the|them)\b", instead="fix"),
    Rule(phrase=r"\bfor ever\b", instead="forever"),
    Rule(phrase=r"\bbelongs? into\b", instead="belongs in"),
    Rule(phrase=r"\b(is|are) there already\b", instead="already exists"),
)


def findings(text: str) -> Iterator[tuple[int, str, Rule]]:
    """Yield the line's number, the words and the rule for each banned phrase."""
    kept = _EXAMPLES.sub(lambda table: "\n" * table[0].count("\n"), text)
    for number, line in enumerate(kept.splitlines(), start=1):
        for rule in RULES:
            for found in re.finditer(rule.phrase, line, re.IGNORECASE):
                yield number, found[0], rule


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *_FILES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    own = str(Path(__file__).relative_to(ROOT))
    return [Path(name) for name in listed.splitlines() if name != own and not name.startswith(_NOT_OURS)]


def main() -> int:
    """Print a line for each finding; return 1 if there is any."""
    count = 0
    for path in _tracked():
        for number, words, rule in findings((ROOT / path).read_text(encoding="utf-8")):
            count += 1
            print(f"{path}:{number}: “{words}”: write {rule.instead}")
    print(f"prose: {count} finding(s)", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
