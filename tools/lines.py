"""`python -m tools.lines`: compare the lines of each top folder with the budget in tools/lines.tsv.

`--write` lowers the budget to the lines that exist now, and raises nothing. Files with the attribute
`linguist-generated` in .gitattributes were written by a program.
"""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

KINDS = ("product", "tests", "docs", "generated")
TABLE = Path("tools/lines.tsv")
_HEADER = ("folder", *KINDS)

Lines = dict[tuple[str, str], int]
"""Number of lines by top folder and kind; `.` is the folder of files at the top."""


def count(root: Path) -> Lines:
    """Count the lines of the files that git tracks or would add, by top folder and kind."""
    files = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    generated = _generated(root, files)
    lines: Counter[tuple[str, str]] = Counter()
    for name in filter(None, files.split("\0")):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue  # deleted, and not yet committed
        folder = name.split("/")[0] if "/" in name else "."
        content = path.read_bytes()
        lines[folder, _kind(name, name in generated)] += 0 if b"\0" in content else content.count(b"\n")
    return dict(lines)


def read_budget(table: TextIO) -> Lines:
    """Read a budget; a cell that is empty is 0."""
    rows = csv.DictReader(table, delimiter="\t")
    return {(row["folder"], kind): int(row[kind] or 0) for row in rows for kind in KINDS}


def excesses(lines: Lines, budget: Lines) -> list[str]:
    """Return a sentence for each folder and kind that has more lines than its budget."""
    return [
        f"{folder}: {lines[folder, kind]} lines of {kind}, {TABLE} allows {budget.get((folder, kind), 0)}"
        for folder, kind in sorted(lines)
        if lines[folder, kind] > budget.get((folder, kind), 0)
    ]


def lowered(lines: Lines, budget: Lines) -> Lines:
    """Return the smaller number of each cell."""
    return {cell: min(most, lines.get(cell, 0)) for cell, most in budget.items()}


def write_budget(budget: Lines, table: TextIO) -> None:
    """Write a row for each folder that may have lines."""
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    writer.writerow(_HEADER)
    for folder in sorted({folder for folder, _ in budget}):
        numbers = [budget.get((folder, kind), 0) for kind in KINDS]
        if any(numbers):
            writer.writerow((folder, *numbers))


def _kind(name: str, generated: bool) -> str:
    if generated:
        return "generated"
    if name.startswith("tests/"):
        return "tests"
    return "docs" if name.startswith("docs/") or name.endswith(".md") else "product"


def _generated(root: Path, files: str) -> set[str]:
    fields = _git(root, "check-attr", "-z", "--stdin", "linguist-generated", given=files).split("\0")
    return {name for name, value in zip(fields[::3], fields[2::3], strict=False) if value == "set"}


def _git(root: Path, *arguments: str, given: str = "") -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], input=given, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def main() -> int:
    """Print what exceeds the budget; return 1 if something does."""
    lines = count(Path())
    with TABLE.open() as table:
        budget = read_budget(table)
    if "--write" in sys.argv[1:]:
        with TABLE.open("w") as table:
            write_budget(lowered(lines, budget), table)
        return 0
    found = excesses(lines, budget)
    for sentence in found:
        print(f"lines: {sentence}", file=sys.stderr)
    if found:
        print(
            f"  Delete as many lines there, or raise that number in {TABLE} and lower another by as much: "
            "CONTRIBUTING.md, What does not belong here",
            file=sys.stderr,
        )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
