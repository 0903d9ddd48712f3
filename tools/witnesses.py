"""Mutants: small faults, planted one at a time in a copy of the project, that a package's tests have to see.

    python -m tools.witnesses sample assets/cluster_provider 100 >tests/mutants/cluster_provider.tsv
    python -m tools.witnesses sample 'assets/training/*.s*' 66 >tests/mutants/jobs.tsv
    python -m tools.witnesses run tests/mutants/cluster_provider.tsv

Run a list before and after tests are removed: the same mutants must be seen. A line names its mutant by
function and source, so that it survives edits elsewhere; a last field names the slow test that sees it, or
says why no test does.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import rooms
from tools.shell_mutants import shell_faults
from training_cluster.paths import ROOT

_SEED = 7
_LIMIT_S = 300
_LENGTH = 70
_INSTALLED = (".venv", ".venv-pcluster", "node_modules", ".cache/prometheus")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A file with a fault."""

    name: tuple[str, ...]
    """Path, function, fault, source, and which of equal ones."""
    text: bytes
    """Source of the file with the fault."""


def _fault(node: ast.AST) -> tuple[str, ast.expr, str] | None:
    """Return the fault's name, the expression that it replaces, and by what."""
    match node:
        case ast.If(test=test):
            return "negate", test, "not ({})"
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn() | ast.Lt() | ast.Gt()]):
            return "compare", node, "(not ({}))"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            return "return None", value, "None"
        case ast.Expr(value=ast.Call(func=func) as call) if ast.unparse(func) != "print":
            return "no call", call, "None"
        case ast.Constant(value=bool(value)):
            return "flip", node, str(not value)
    return None


def _inside(node: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of a tree but for decorators, each with the function that it is in."""
    for child in ast.iter_child_nodes(node):
        if child in getattr(node, "decorator_list", ()):
            continue  # a dataclass that is not frozen works the same
        named = isinstance(child, ast.FunctionDef | ast.ClassDef)
        inner = f"{function}.{child.name}".lstrip(".") if named else function  # type: ignore[attr-defined]
        yield function, child
        yield from _inside(child, inner)


def _shell_mutants(path: Path) -> Iterator[Mutant]:
    seen: Counter[tuple[str, ...]] = Counter()
    for function, kind, segment, planted in shell_faults((ROOT / path).read_text()):
        name = (str(path), function, kind, " ".join(segment.split())[:_LENGTH])
        seen[name] += 1
        yield Mutant(name=(*name, str(seen[name])), text=planted.encode())


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    if path.suffix != ".py":
        yield from _shell_mutants(path)
        return
    source = (ROOT / path).read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    seen: Counter[tuple[str, ...]] = Counter()
    for function, node in _inside(ast.parse(source)):
        if (fault := _fault(node)) is None:
            continue
        kind, replaced, text = fault
        start = begins[replaced.lineno - 1] + replaced.col_offset
        end = begins[(replaced.end_lineno or 1) - 1] + (replaced.end_col_offset or 0)
        segment = source[start:end].decode()
        name = (str(path), function, kind, " ".join(segment.split())[:_LENGTH])
        seen[name] += 1
        planted = source[:start] + text.format(segment).encode() + source[end:]
        yield Mutant(name=(*name, str(seen[name])), text=planted)


def sample(package: str, number: int) -> list[Mutant]:
    """Return a number of mutants of a package or pattern, the same at each call, in the order of its code."""
    files = ROOT.glob(package) if "*" in package else (ROOT / package).rglob("*.py")
    paths = sorted(path.relative_to(ROOT) for path in files)
    every = [mutant for path in paths for mutant in mutants(path)]
    chosen = random.Random(_SEED).sample(range(len(every)), min(number, len(every)))  # noqa: S311
    return [every[index] for index in sorted(chosen)]


def _tests(copy: Path, path: Path) -> list[list[str]]:
    """Return the fast tests of a package, of a script those beside it: those that name the file, others."""
    parts = [part.replace("-", "_") for part in path.parent.parts[path.parts[0] == "constructs" :]]
    folder = copy.joinpath("tests/unit", *parts)
    folder = next(each for each in (folder, *folder.parents) if each.exists())
    files = sorted(folder.rglob("test_*.py") if path.suffix == ".py" else folder.glob("test_*.py"))
    files += filter(Path.exists, [copy / rooms.TESTED_WITH.get(str(path.parent), "none")])
    files = [file for file in files if file.name != "test_witnesses.py"]  # it misses the line of each mutant
    named = [file for file in files if re.search(rf"\b{path.stem}\b", file.read_text())]
    return [[str(file) for file in named], [str(file) for file in files if file not in named]]


def _tests_pass(copy: Path, tests: list[str]) -> bool:
    marks = [] if tests[0].startswith("tests/") else ["-m", "not slow and not root"]
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", *marks, *tests]
    environment = os.environ | {"PYTHONPATH": f"{copy}:{copy / 'constructs'}"}
    try:
        ran = subprocess.run(
            command, check=False, cwd=copy, env=environment, timeout=_LIMIT_S, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED)


def run(lines: list[list[str]]) -> int:
    """Print who sees which mutant; return how many lines of a list are no longer true."""
    wrong = 0
    with TemporaryDirectory(dir=ROOT / ".cache") as folder:
        copy = Path(folder) / "copy"
        Path(folder).chmod(0o755)  # tests of other users read it
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(*_INSTALLED, ".git", ".cache", ".rehearsal")
        )
        for installed in _INSTALLED:
            (copy / installed).parent.mkdir(exist_ok=True)
            (copy / installed).symlink_to(ROOT / installed)
        for place in {tuple(sorted(chain(*_tests(copy, Path(line[0]))))) for line in lines}:
            if not (place and _tests_pass(copy, [*place])):
                raise SystemExit(f"{place}: these tests fail, or there are none, without a mutant")
        for number, (*name, reason) in enumerate(lines):
            path = Path(name[0])
            verdict = "gone"
            if mutant := next((each for each in mutants(path) if list(each.name) == name), None):
                (copy / path).write_bytes(mutant.text)
                os.utime(copy / path, (number, number))  # else equal sizes look compiled
                groups = [[reason]] if reason.startswith("tests/") else _tests(copy, path)
                unseen = all(_tests_pass(copy, tests) for tests in groups if tests)
                verdict = "unseen" if unseen else "seen"
                shutil.copy2(ROOT / path, copy / path)
            wrong += verdict != ("unseen" if reason and not reason.startswith("tests/") else "seen")
            print(verdict, *name, reason, sep="\t", flush=True)
    return wrong


def main(arguments: list[str]) -> str | None:
    """Print a list, or run one; return the error."""
    match arguments:
        case ["sample", package, number] if number.isdigit():
            for mutant in sample(package, int(number)):
                print(*mutant.name, "", sep="\t")
            return None
        case ["run", file] if Path(file).is_file():
            wrong = run([line.split("\t") for line in Path(file).read_text().splitlines()])
            return f"{wrong} lines are not true: unseen, or gone from the code" if wrong else None
    return "usage: python -m tools.witnesses {sample PACKAGE NUMBER | run FILE}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
