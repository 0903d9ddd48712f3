"""The unit tests of what changed since main, or in the last commit: `make test-changed` runs them.

The tests of a file are at the path that mirrors it (tests/rooms.py), else those that import or name it.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import rooms
from training_cluster.paths import ROOT

_MAIN = ("main", "origin/main")
# Files of data that a folder's code finds by a pattern, and modules that one table tests together.
_READ_BY = {
    "assets/cluster_provider": "tests/unit/assets/cluster_provider",
    "cluster_configs": "tests/unit/training_cluster/catalog",
}


def _git(*words: str) -> list[str]:
    """Return the lines that git prints; none for a merge base that does not exist."""
    ran = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if ran.returncode and words[0] != "merge-base":
        raise SystemExit(f"test-changed: git {' '.join(words)} failed. All fast tests: make test-fast")
    return ran.stdout.splitlines() if ran.returncode == 0 else []


def changed() -> list[Path]:
    """List the files that differ from main's; on main the uncommitted ones, or those of the last commit."""
    new = _git("ls-files", "-o", "--exclude-standard")
    head = _git("rev-parse", "HEAD")
    base = next((found for ref in _MAIN if (found := _git("merge-base", "HEAD", ref))), head)
    if base == head:
        base = ["HEAD"] if new or _git("diff", "--name-only", "HEAD") else ["HEAD~1"]
    return [Path(name) for name in sorted({*new, *_git("diff", "--name-only", "--no-renames", *base)})]


@cache
def _texts() -> dict[Path, str]:
    return {path: (ROOT / path).read_text() for path in rooms.tracked("tests/unit/**.py")}


def _naming(path: Path) -> set[Path]:
    """Return the unit tests that import a module or name another file, themselves or by what they import."""
    folder, name = ".".join(path.parent.parts).removeprefix("constructs."), path.stem
    pattern = rf"^\s*(from|import) {re.escape(folder)}(\.| import .*\b){name}\b"
    if path.suffix != ".py":  # FOLDER / "name", "folder" / "name" or folder/name
        folder = rf"({re.escape(path.parent.name or 'ROOT')}\"?|__file__\)\.parent)"
        pattern = rf"{folder}( / |/)\"?{re.escape(path.name)}\""
    others = {
        other for other, text in _texts().items() if other != path and re.search(pattern, text, re.I | re.M)
    }
    return set().union(*map(tests_of, others))


def _in_folder(path: Path) -> set[Path]:
    """Return the tests at the place that mirrors the nearest folder that has some."""
    for parent in path.parents[:-1]:
        folder = Path("tests/unit", str(parent).replace("-", "_").removeprefix("constructs/"))
        if tests := set(rooms.tracked(f"{folder}/test_*.py")):
            return tests
    return set()


def tests_of(path: Path) -> set[Path]:
    """Return the unit tests of a file that exists or existed; empty where none follows from its path."""
    if path.is_relative_to("tests"):
        if not path.is_relative_to("tests/unit"):
            return _naming(path)
        if path.name == "conftest.py":  # that of all tests is for make test-fast
            return {path.parent} - {Path("tests/unit")}
        if path.name.startswith("test_"):
            return {path} if (ROOT / path).is_file() else set()
        return _naming(path)
    together = {Path(test) for folder, test in rooms.TESTED_WITH.items() if path.is_relative_to(folder)}
    fast = {test for test in together if test.is_relative_to("tests/unit")}
    read = {Path(tests) for folder, tests in _READ_BY.items() if path.is_relative_to(folder)}
    return read or rooms.tests_of(path, "unit") or fast or _in_folder(path) or _naming(path)


def main() -> int:
    """Run the tests; return pytest's exit status, 0 where there is none to run."""
    tests: set[Path] = set()
    for path in changed():
        found = tests_of(path)
        if not found:
            print(f"no fast test follows from the path of {path}", file=sys.stderr)
        tests |= found
    if not tests:
        print("test-changed: nothing to run. All fast tests: make test-fast", file=sys.stderr)
        return 0
    status = pytest.main(["-q", "-m", "not slow and not root", *sorted(map(str, tests))])
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else int(status)


if __name__ == "__main__":
    sys.exit(main())
