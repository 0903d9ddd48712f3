"""The version of ParallelCluster, read from its one requirement."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from training_cluster.catalog.pcluster_version import read_pcluster_version
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.paths import ROOT


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module that its program uses: all but docstrings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.lineno, node.value


@pytest.mark.slow
def test_the_library_version_is_in_one_requirement() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    named = [
        f"{path}:{line}"
        for path in tracked.stdout.splitlines()
        if (ROOT / path).exists()
        for line, text in _strings(ast.parse((ROOT / path).read_text()))
        if PCLUSTER_VERSION in text.replace("\\", "")  # as a pattern, too
    ]
    assert named == [], "PCLUSTER_VERSION of flags/cluster.py is read from requirements-pcluster.txt"


def test_an_unclear_requirement_of_the_library_is_refused(tmp_path: Path) -> None:
    pin = f"aws-parallelcluster=={PCLUSTER_VERSION}\n"
    for text in ("", "aws-parallelcluster>=3.16\n", pin + pin):
        (tmp_path / "requirements.txt").write_text(text)
        with pytest.raises(ValueError, match="expected one line"):
            read_pcluster_version(tmp_path / "requirements.txt")
