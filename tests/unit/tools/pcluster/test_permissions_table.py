"""The table of permissions, and the command that writes it (`make permissions`)."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.recording import judged_calls
from tools.pcluster.permission_sources import SourceError
from tools.pcluster.permissions_table import record, with_calls, with_types
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


def _schema(*created: str) -> dict[str, Any]:
    return {"handlers": {"create": {"permissions": list(created)}}, "properties": {"Volumes": {}}}


def test_the_table_is_written_as_it_is_read() -> None:
    assert dump(load()) == PATH.read_text(encoding="utf-8")


def test_a_broken_line_of_the_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "permissions.tsv").write_text(dump(ROWS) + "ec2:Start\n")
    with pytest.raises(ValueError, match=r"permissions\.tsv:5: expected the cells action, scopes"):
        load(tmp_path / "permissions.tsv")


def test_what_the_registry_says_anew_is_for_a_person_to_decide_and_the_rest_is_kept() -> None:
    found = {row.action: row for row in with_types(ROWS, lambda _: _schema("ec2:RunInstances", "ec2:New"))}
    assert found["ec2:RunInstances"] == ROWS[0]
    assert found["ec2:New"].scopes == (UNDECIDED,)
    assert found["iam:GetPolicy"] == ROWS[2]
    assert "ec2:AttachVolume" not in found, "nothing names it any more"
    again = list(found.values())
    assert with_types(again, lambda _: _schema("ec2:New", "ec2:RunInstances")) == again


def test_a_property_that_a_type_has_not_is_no_reason_to_leave_a_row_out() -> None:
    with pytest.raises(
        SourceError, match="left out for the property Volumes, which AWS::EC2::Instance lacks"
    ):
        with_types(ROWS, lambda _: {"handlers": {}})


def _line(action: str, by: str) -> str:
    return json.dumps({"action": action, "by": by, "context": {}, "resource": "*"})


def test_an_unrecorded_call_goes_and_a_new_type_waits_for_its_schema() -> None:
    made = [("ec2:RunInstances", "request ec2:RunInstances"), ("-", "AWS::New::Type create")]
    made.append(("ec2:RunInstances", "AWS::EC2::Instance create"))
    recording = "".join(f"{_line(*each)}\n" for each in made)
    own = [("record.py", "PutParameter", "ssm:PutParameter")]
    found = {row.action: row for row in with_calls(ROWS, recording, own)}
    assert found["ec2:RunInstances"] == ROWS[0]
    assert "iam:GetPolicy" not in found
    assert found["-"].types == ("AWS::New::Type",)
    assert found["ssm:PutParameter"].provider == ("record.py PutParameter",)


def test_the_table_has_the_calls_of_the_recording() -> None:
    rows = load()
    recording = judged_calls.PATH.read_text(encoding="utf-8")
    calls = [(call.partition(" "), row.action) for row in rows for call in row.provider]
    own = [(file, operation, action) for (file, _, operation), action in calls]
    assert dump(with_calls(rows, recording, own)) == dump(rows), "type: make permissions"


def test_without_judged_calls_the_command_to_type_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has no judged calls\.\n  type: make validate, then: make perm"):
        record(tmp_path)
