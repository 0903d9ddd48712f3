"""`.ci/run` as root: a clone in which an ordinary user runs the fast tests."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

pytestmark = pytest.mark.root

MAKEFILE = """\
setup:
\t@mkdir -p .cache/logs
test-fast:
\t@echo "== 1 passed by $$(id -un) in 1s =="; test ! -e fails
check:
\t@echo "checked"; test ! -e wrong
validate faults site environment:
test-slow:
\t@echo "== 2 passed by $$(id -un) in 1s =="
"""
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")


def run(checkout: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Commit a checkout with a small Makefile and these files, and run its `.ci/run`."""
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    for name, text in (("Makefile", MAKEFILE), *((name, "") for name in files)):
        (checkout / name).write_text(text)
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        subprocess.run(["git", *IDENTITY, *command], cwd=checkout, check=True)
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(checkout / "summary")}
    return subprocess.run([".ci/run"], cwd=checkout, env=environment, capture_output=True, text=True)


def clone_of(output: str) -> Path:
    (named,) = re.findall(r"this tests commit [0-9a-f]+ in (/srv/ci\.\w+), without changes", output)
    return Path(named)


def test_a_user_runs_the_fast_tests(tmp_path: Path) -> None:
    done = run(tmp_path / "app")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "app" / "summary").read_text().splitlines() == [
        "== 1 passed by nobody in 1s ==",
        "== 2 passed by root in 1s ==",
    ]
    assert not clone_of(done.stdout).exists()


def test_a_failed_run_leaves_no_clone(tmp_path: Path) -> None:
    done = run(tmp_path / "app", "fails")
    assert done.returncode != 0
    assert "2 passed" not in done.stdout
    assert not clone_of(done.stdout).exists()


def test_a_failed_check_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path / "app", "wrong")
    assert done.returncode != 0
    assert "2 passed" in done.stdout
    assert "checked" in done.stdout
    assert done.stderr.endswith("Failed: the checks, above\n")
