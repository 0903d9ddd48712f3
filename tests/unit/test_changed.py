"""Which tests `make test-changed` runs, in a copy of two modules and in the project."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import changed, rooms
from training_cluster.paths import ROOT

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty repository, in the place of the project."""
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    return tmp_path


def _commit(project: Path, name: str) -> None:
    (project / name).write_text(name)
    subprocess.run([*GIT, "add", "."], cwd=project, check=True)
    subprocess.run([*GIT, "commit", "-qm", name], cwd=project, check=True)


def _names() -> Iterator[str]:
    return (str(path) for path in changed.changed())


def test_a_branch_is_compared_with_main(project: Path) -> None:
    _commit(project, "old.py")
    subprocess.run([*GIT, "switch", "-qc", "mine"], cwd=project, check=True)
    _commit(project, "first.py")
    (project / "old.py").unlink()
    (project / "new.py").write_text("")
    assert [*_names()] == ["first.py", "new.py", "old.py"]


def test_main_is_compared_with_itself(project: Path) -> None:
    _commit(project, "old.py")
    _commit(project, "last.py")
    assert [*_names()] == ["last.py"]
    (project / "old.py").write_text("other")
    assert [*_names()] == ["old.py"]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("ops/jobs/listing.py", {"ops/jobs/test_listing.py"}),
        ("assets/bootstrap/run-steps.sh", {"assets/bootstrap/test_run_steps.py"}),
        ("constructs/training_cluster/network/network.py", {"stacks/test_network_stack.py"}),
        ("tests/unit/test_app.py", {"test_app.py"}),
        ("tests/rooms.py", {"test_changed.py", "test_layout.py", "test_renovate.py"}),
        ("tests/unit/ops/conftest.py", {"ops"}),
        ("tests/unit/conftest.py", set()),
        ("SECURITY.md", set()),
    ],
)
def test_the_tests_of_a_file(path: str, tests: set[str]) -> None:
    assert (ROOT / path).exists()
    assert changed.tests_of(Path(path)) == {Path("tests/unit", each) for each in tests}


def test_a_folders_test_shares_words_with_its_file() -> None:
    users = rooms.tests_of(Path("assets/bootstrap/steps/71-apply-users.sh"), "unit")
    assert {path.stem for path in users} == {"test_steps_start_users", "test_steps_start_users_refusals"}
