"""docs/mechanisms: each place in the code that a page names exists."""

import ast
import re
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

PAGES = sorted((ROOT / "docs" / "mechanisms").glob("*.md"))
_PLACE = re.compile(r"`(?P<file>[\w./-]+\.(?:py|sh|slurm)):(?P<symbol>[\w.]+)`")
_SHELL = re.compile(r"^(?:(\w+)\(\)|(?:readonly |export )*(\w+)=)", re.MULTILINE)


def _python_symbols(body: list[ast.stmt], prefix: str = "") -> set[str]:
    found = set[str]()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(prefix + node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {prefix + node.name, *_python_symbols(node.body, f"{prefix}{node.name}.")}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {prefix + each.id for each in targets if isinstance(each, ast.Name)}
    return found


def _symbols(file: Path) -> set[str]:
    text = file.read_text()
    if file.suffix == ".py":
        return _python_symbols(ast.parse(text).body)
    return {name for names in _SHELL.findall(text) for name in names if name}


def wrong_places(text: str) -> list[str]:
    """Return the places `file:symbol` of a page that do not exist."""
    places = [(each["file"], each["symbol"]) for each in _PLACE.finditer(text)]
    return [
        f"{file}:{symbol}"
        for file, symbol in places
        if not (ROOT / file).is_file() or symbol not in _symbols(ROOT / file)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_answer_is_a_place_in_the_code(page: Path) -> None:
    _, questions = page.read_text().split("## Questions\n")
    asked = [line for line in questions.splitlines() if line.startswith("- ")]
    assert [line for line in asked if not _PLACE.search(line)] == []
    assert wrong_places(page.read_text()) == []
