"""Which tests `make test-changed` runs."""

from pathlib import Path

from tests import changed, rooms
from training_cluster.paths import ROOT


def test_tests_of_a_file() -> None:
    for path, tests in (
        ("ops/jobs/export.py", {"ops/jobs/test_export.py"}),
        ("assets/bootstrap/run-steps.sh", {"assets/bootstrap/test_run_steps.py"}),
        ("constructs/training_cluster/network/network.py", {"stacks/test_network_stack.py"}),
        ("tests/unit/test_app.py", {"test_app.py"}),
        ("tests/rooms.py", {"test_changed.py", "test_layout.py", "test_renovate.py"}),
        ("tests/unit/ops/conftest.py", {"ops"}),
        ("tests/unit/conftest.py", set()),
        ("SECURITY.md", set()),
    ):
        assert (ROOT / path).exists()
        assert changed.tests_of(Path(path)) == {Path("tests/unit", each) for each in tests}


def test_folders_test_shares_words_with_its_file() -> None:
    users = rooms.tests_of(Path("assets/bootstrap/steps/71-apply-users.sh"), "unit")
    assert {path.stem for path in users} == {"test_steps_users"}
