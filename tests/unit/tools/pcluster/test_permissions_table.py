"""The table of permissions, and the command that writes it (`make permissions`)."""

from rehearsal.recording import judged_calls
from tools.pcluster.permissions_table import with_calls, with_types
from training_cluster.permissions.table import PATH, dump, load


def test_table_is_written_as_it_is_read() -> None:
    assert dump(load()) == PATH.read_text(encoding="utf-8")


def test_table_has_the_calls_of_the_recording() -> None:
    rows = load()
    recording = judged_calls.PATH.read_text(encoding="utf-8")
    assert dump(with_calls(rows, recording)) == dump(rows), "type: make permissions"


def test_table_has_the_registrys_handlers() -> None:
    """Compare with cfn-lint's copy; a newer one may declare more, and each new action needs a decision."""
    assert dump(with_types(load())) == dump(load()), "type: make permissions"
