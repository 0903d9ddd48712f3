"""StorageStack on a local AWS: flags are taken or refused, and data stays. The tests build on each other."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from rehearsal.problems import RehearsalError
from tests.slow.conftest import Cloud

pytestmark = pytest.mark.slow

STACK = "TrainingCluster-Storage"
GROWN = ("fsx_gib=2400",)
FASTER = ("fsx_mbps_per_tib=1000", "efs_mibps=100", "home=efs")


def _deploy(cloud: Cloud, *flags: str) -> None:
    """Run `cdk deploy StorageStack`. Raises RehearsalError if it fails."""
    context = [part for flag in flags for part in ("-c", flag)]
    cloud.cdk.run(
        "deploy", "StorageStack", "--require-approval", "never", *context, output=cloud.folder / "cdk.out"
    )


def _outputs(cloud: Cloud) -> dict[str, str]:
    stack = cloud.stack(STACK)
    assert stack
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def _given(outputs: dict[str, str]) -> tuple[str, ...]:
    """Return the flags with which a new stack adopts the storage of an old one."""
    flags = {"bucket_name": "BucketName", "fsx_id": "FileSystemId", "efs_id": "EfsId"}
    return tuple(f"{flag}={outputs[output]}" for flag, output in flags.items())


def _data(cloud: Cloud) -> dict[str, Any]:
    """List everything that holds data, and the access to it."""
    fsx, efs, s3 = (cloud.client(name) for name in ("fsx", "efs", "s3"))
    systems = [each["FileSystemId"] for each in efs.describe_file_systems()["FileSystems"]]
    targets = [t for id_ in systems for t in efs.describe_mount_targets(FileSystemId=id_)["MountTargets"]]
    return {
        "lustre": [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]],
        "associations": fsx.describe_data_repository_associations()["Associations"],
        "efs": systems,
        "mount targets": [each["MountTargetId"] for each in targets],
        "buckets": [
            b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("trainingcluster-storage")
        ],
    }


def _refused(cloud: Cloud, *flags: str) -> str:
    """Deploy what must fail and be rolled back, with all data as before; the guard's reason."""
    before, seen = _data(cloud), len(_failures(cloud))
    with pytest.raises(RehearsalError):
        _deploy(cloud, *flags)
    stack = cloud.stack(STACK)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _data(cloud) == before
    first, *others = _failures(cloud)[seen:]
    assert not others, "nothing failed but what refused it"
    return first


def _failures(cloud: Cloud) -> Sequence[str]:
    """Read the reasons of failed updates, oldest first."""
    pages = cloud.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=STACK)
    events = [event for page in pages for event in page["StackEvents"]]
    failed = [event for event in events if event["ResourceStatus"] == "UPDATE_FAILED"]
    return [event["ResourceStatusReason"] for event in reversed(failed)]


def _lustre(cloud: Cloud) -> dict[str, Any]:
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    found: dict[str, Any] = system
    return found


def test_storage_and_the_network_that_it_stands_in_are_one_deploy(cloud: Cloud) -> None:
    _deploy(cloud)
    assert {name: len(found) for name, found in _data(cloud).items()} == {
        "lustre": 1,
        "associations": 2,
        "efs": 1,
        "mount targets": 1,
        "buckets": 1,
    }


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["fsx_type=scratch2", "bucket_name=mine"],
            [
                "fsx_type: persistent2 -> scratch2",
                "Keep -c fsx_type=persistent2",
                "bucket_name: (own) -> mine",
                "leave bucket_name as it was",
            ],
        ),
        (["fsx_efa=on", "fsx_gib=19200"], ["fsx_efa: off -> on", "keep -c fsx_efa=off"]),
    ],
)
def test_what_would_replace_data_is_refused_before_anything_happens(
    cloud: Cloud, flags: list[str], words: list[str]
) -> None:
    before = _lustre(cloud)
    reason = _refused(cloud, *flags)
    for word in (*words, "Nothing was changed"):
        assert word in reason
    assert _lustre(cloud) == before


def test_what_can_change_in_place_does(cloud: Cloud) -> None:
    before = _data(cloud)
    _deploy(cloud, *GROWN)
    _deploy(cloud, *GROWN, "fsx_mbps_per_tib=1000")
    _deploy(cloud, *GROWN, *FASTER)
    assert _data(cloud) == before
    system = _lustre(cloud)
    assert system["StorageCapacity"] == 2400
    assert system["LustreConfiguration"]["PerUnitStorageThroughput"] == 1000
    (home,) = cloud.client("efs").describe_file_systems()["FileSystems"]
    assert (home["ThroughputMode"], home["ProvisionedThroughputInMibps"]) == ("provisioned", 100.0)


def test_a_file_system_cannot_become_smaller(cloud: Cloud) -> None:
    assert "fsx_gib: 2400 -> 1200" in _refused(cloud, *FASTER)
    assert _lustre(cloud)["StorageCapacity"] == 2400


def test_another_file_system_is_refused_while_a_stack_uses_this_one_and_the_rollback_passes_the_guard(
    cloud: Cloud,
) -> None:
    """The guard lets an id be given; CloudFormation, at the end, refuses to change an export in use."""
    cloudformation, fsx = cloud.client("cloudformation"), cloud.client("fsx")
    uses = {
        "Resources": {"Nothing": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
        "Outputs": {"Id": {"Value": {"Fn::ImportValue": "TrainingCluster-Storage:FileSystemId"}}},
    }
    cloudformation.create_stack(StackName="User", TemplateBody=json.dumps(uses))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="User", WaiterConfig={"Delay": 1})
    other = fsx.create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=_lustre(cloud)["SubnetIds"]
    )["FileSystem"]["FileSystemId"]
    outputs = _outputs(cloud)
    reason = _refused(cloud, f"fsx_id={other}", "efs_mibps=100")
    assert "Export TrainingCluster-Storage:FileSystemId cannot be updated as it is in use by User" in reason
    assert _outputs(cloud) == outputs
    for tidy in (lambda: fsx.delete_file_system(FileSystemId=other), lambda: _delete(cloud, "User")):
        tidy()


def _delete(cloud: Cloud, name: str) -> None:
    cloudformation = cloud.client("cloudformation")
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def test_what_is_there_already_can_be_given_and_stays(cloud: Cloud) -> None:
    before, outputs = _data(cloud), _outputs(cloud)
    _deploy(cloud, *GROWN, f"efs_id={outputs['EfsId']}")
    assert _data(cloud) == before
    assert _outputs(cloud) == outputs


def test_a_deleted_stack_leaves_its_data_and_a_new_one_takes_it(cloud: Cloud) -> None:
    before, outputs = _data(cloud), _outputs(cloud)
    cloud.client("cloudformation").update_termination_protection(
        StackName=STACK, EnableTerminationProtection=False
    )
    _delete(cloud, STACK)
    assert cloud.stack(STACK) is None
    assert cloud.stack("TrainingCluster-Network"), "the file systems stand in it"
    assert _data(cloud) == before
    _deploy(cloud, *_given(outputs))
    stack = cloud.stack(STACK)
    assert stack and stack["StackStatus"] == "CREATE_COMPLETE"
    assert stack["EnableTerminationProtection"] is True
    assert _outputs(cloud) == outputs
    assert _data(cloud) == before


def test_an_id_that_is_forgotten_makes_no_empty_file_system_in_the_place_of_the_full_one(
    cloud: Cloud,
) -> None:
    bucket, lustre, efs = _given(_outputs(cloud))
    reason = _refused(cloud, bucket, efs)
    id_ = lustre.removeprefix("fsx_id=")
    assert f"fsx_id: {id_} -> (own) would replace it with a new, empty one" in reason
    assert f"Type -c fsx_id={id_}" in reason
