"""The budget of lines in `make check`."""

import io
import subprocess
from pathlib import Path

import pytest

from tools.lines import count, excesses, lowered, read_budget, write_budget

BUDGET = "folder\tproduct\ttests\tdocs\tgenerated\nops\t2\t\t9\t\ntests\t0\t1\t0\t0\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a Git checkout with a file of each kind; one file is not tracked."""
    files = {
        ".gitattributes": "/ops/board.json linguist-generated\n",
        "ops/a.py": "1\n2\n3\n",
        "ops/board.json": "{\n}\n",
        "ops/README.md": "x\n",
        "tests/unit/test_a.py": "1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    (tmp_path / "ops/b.sh").write_text("new\n")
    return tmp_path


def test_lines_are_counted_by_folder_and_kind(checkout: Path) -> None:
    assert count(checkout) == {
        (".", "product"): 1,
        ("ops", "product"): 4,
        ("ops", "generated"): 2,
        ("ops", "docs"): 1,
        ("tests", "tests"): 1,
    }


def test_more_lines_than_the_budget_are_named(checkout: Path) -> None:
    found = excesses(count(checkout), read_budget(io.StringIO(BUDGET)))
    assert [sentence.split(",")[0] for sentence in found] == [
        ".: 1 lines of product",
        "ops: 2 lines of generated",
        "ops: 4 lines of product",
    ]


def test_a_budget_is_lowered_and_never_raised(checkout: Path) -> None:
    written = io.StringIO()
    write_budget(lowered(count(checkout), read_budget(io.StringIO(BUDGET))), written)
    assert written.getvalue() == (
        "folder\tproduct\ttests\tdocs\tgenerated\nops\t2\t0\t1\t0\ntests\t0\t1\t0\t0\n"
    )
