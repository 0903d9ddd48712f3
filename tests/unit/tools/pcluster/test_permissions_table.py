"""The table of permissions, and the command that writes it (`make permissions`)."""

from rehearsal.recording import judged_calls
from tools.pcluster.permissions_table import with_calls, with_types
from training_cluster.permissions.table import PATH, UNDECIDED, Row, dump, load

ROWS = [
    Row(
        action="ec2:RunInstances",
        scopes=("Ec2",),
        calls=("RunInstances",),
        types=("AWS::EC2::Instance create",),
    ),
    Row(
        action="ec2:AttachVolume",
        types=("AWS::EC2::Instance create",),
        left_out=("unset: AWS::EC2::Instance Volumes",),
    ),
    Row(action="iam:GetPolicy", scopes=("ReadIam",), calls=("GetPolicy",)),
]


def _with_types(rows: list[Row], *created: str) -> list[Row]:
    return with_types(rows, lambda _: {"create": created}, lambda _: {"Volumes": {}})


def test_table_is_written_as_it_is_read() -> None:
    assert dump(load()) == PATH.read_text(encoding="utf-8")


def test_new_action_of_a_type_is_undecided() -> None:
    found = {row.action: row for row in _with_types(ROWS, "ec2:RunInstances", "ec2:New")}
    assert found["ec2:RunInstances"] == ROWS[0]
    assert found["ec2:New"].scopes == (UNDECIDED,)
    assert found["iam:GetPolicy"] == ROWS[2]
    assert "ec2:AttachVolume" not in found, "nothing names it any more"
    again = list(found.values())
    assert _with_types(again, "ec2:New", "ec2:RunInstances") == again


def test_table_has_the_calls_of_the_recording() -> None:
    rows = load()
    recording = judged_calls.PATH.read_text(encoding="utf-8")
    assert dump(with_calls(rows, recording)) == dump(rows), "type: make permissions"


def test_table_has_the_registrys_handlers() -> None:
    """Compare with cfn-lint's copy; a newer one may declare more, and each new action needs a decision."""
    assert dump(with_types(load())) == dump(load()), "type: make permissions"
