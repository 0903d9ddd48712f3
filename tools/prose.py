"""`python -m tools.prose`: report phrases that CONTRIBUTING.md bans from prose, comments and messages.

A native reader stops at these phrases, which no maintained linter knows. The table of examples in
CONTRIBUTING.md is left out.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from training_cluster.paths import ROOT

_FILES = ("*.md", "*.py", "*.sh", "*.slurm", "*.yaml", "Makefile")
_NOT_OURS = ("tests/", "docs/adr/", "CHANGELOG.md", "ops/diagnose/causes.yaml")
"""Tests quote, decisions and the changelog are history, and causes quote users' logs."""
_EXAMPLES = re.compile(r"^\| not \| but \|\n(\|.*\n)*", re.MULTILINE)


RULES = [line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines()[1:]]
"""Banned phrases, as regular expressions that ignore the case, each with what to write instead."""


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line's number, the words, and what to write instead, for each banned phrase."""
    kept = _EXAMPLES.sub(lambda table: "\n" * table[0].count("\n"), text)
    for number, line in enumerate(kept.splitlines(), start=1):
        for phrase, instead in RULES:
            for found in re.finditer(phrase, line, re.IGNORECASE):
                yield number, found[0], instead


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *_FILES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [Path(name) for name in listed.splitlines() if not name.startswith(_NOT_OURS)]


def main() -> int:
    """Print a line for each finding; return 1 if there is any."""
    count = 0
    for path in _tracked():
        for number, words, instead in findings((ROOT / path).read_text(encoding="utf-8")):
            count += 1
            print(f"{path}:{number}: “{words}”: write {instead}")
    print(f"prose: {count} finding(s)", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
