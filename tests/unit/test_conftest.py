"""Tests that need root's rights: who runs them, and that CI does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

ONE = """\
import pytest

@pytest.mark.root
def test_of_root():
    pass

def test_of_all():
    pass
"""
RUN = """\
import os, pytest
os.geteuid = lambda: {uid}
raise SystemExit(pytest.main(["-ra", "-p", "no:cacheprovider", "-o", "markers=root", "."]))
"""


@pytest.mark.parametrize(
    ("uid", "counts"), [(0, "2 passed"), (1000, "1 passed, 1 skipped")], ids=["root", "a user"]
)
def test_a_user_skips_the_tests_of_root_and_sees_how_many(tmp_path: Path, uid: int, counts: str) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(ONE)
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(uid=uid)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert counts in done.stdout
    assert ("SKIPPED [1] test_one.py:3: root: make test-root" in done.stdout) == (uid != 0)


def test_no_test_looks_for_roots_rights_itself() -> None:
    """A test with a skip of its own would be missing where CI runs those of root."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert not re.search(r"skipif\([^)]*get(e)?uid", path.read_text()), path


@pytest.mark.parametrize(("workflow", "mode"), [("ci", "root"), ("nightly", "nightly")])
def test_ci_runs_the_tests_of_root_as_root(workflow: str, mode: str) -> None:
    steps = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text()
    assert re.search(rf"- run: sudo env .*/\.ci/run {mode}$", steps, re.MULTILINE)
