"""`trainctl verify`: each verdict of each check."""

from collections.abc import Callable
from typing import Any

import pytest

from ops.verify.checks import CHECKS
from ops.verify.deploy import STACK_TIMES
from ops.verify.nodes import NODE_CHECKS
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.verify.deployed import DENIED, Deployed, call, every, layer, ssh

ON_HEAD_NODE = {
    *("lustre-mounted", "efs-mounted", "training-scripts", "bootstrap-steps", "cfn-init", "containers"),
    "topology",
    *("slurm-jobrequeue", "slurm-killwait", "slurm-prologflags"),
    *("slurm-enforcepartlimits", "slurm-schedulerparameters", "slurm-proctracktype"),
    *(
        "slurm-prolog",
        "slurm-epilog",
        "slurm-suspendtime",
        "scaled-down",
        "bucket-to-lustre",
        "lustre-to-bucket",
    ),
}
Make = Callable[..., Deployed]


def instance(**members: Any) -> dict[str, Any]:
    """Return the change of the head node."""
    change = every("Instances", **members)
    return {"amended": ("DescribeInstances", lambda said: change(said["Reservations"][0]))}


def amended(operation: str, key: str, **members: Any) -> dict[str, Any]:
    return {"amended": (operation, every(key, **members))}


def test_a_cluster_as_expected_holds(deployed: Make) -> None:
    found = deployed().results()
    assert {each.id: each.seen for each in found.values() if each.verdict != "held"} == {}
    assert list(found) == [check.id for check in CHECKS]


@pytest.mark.parametrize("expected", STACK_TIMES, ids=lambda each: each.id)
def test_a_stack_that_took_too_long_differs(deployed: Make, expected: Any) -> None:
    found = deployed(minutes=expected.most_minutes + 0.5).results()
    assert found[expected.id].verdict == "differs"
    assert deployed(minutes=expected.most_minutes).results()[expected.id].verdict == "held"


def test_a_failed_check_hides_no_other(deployed: Make) -> None:
    for change, check, verdict, seen in (
        ({"reason": "not authorized"}, *("denied-calls", "differs", "AWS::CloudFormation::Stack")),
        (
            {"LookupEvents": {"Events": [call("CreateStack", "AccessDenied")]}},
            *("denied-calls-trail", "differs", "cloudformation:CreateStack"),
        ),
        ({"LookupEvents": DENIED}, "denied-calls-trail", "could not look", "permission LookupEvents"),
        ({"GetLayerVersionByArn": layer("3.1.0")}, "layer", "differs", "3.1.0"),
        ({"GetLayerVersionByArn": layer(size=9)}, "layer", "differs", "0 MiB"),
        ({"slurm": {"JobRequeue": "0"}}, "slurm-jobrequeue", "differs", "JobRequeue=0"),
        ({"slurm": {"KillWait": "5 sec"}}, "slurm-killwait", "differs", "KillWait=5 sec"),
        ({"slurm": {"PrologFlags": "Alloc"}}, "slurm-prologflags", "differs", "PrologFlags=Alloc"),
        ({"slurm": {"EnforcePartLimits": "NO"}}, "slurm-enforcepartlimits", "differs", "NO"),
        ({"slurm": {"SchedulerParameters": "a=1"}}, "slurm-schedulerparameters", "differs", "a=1"),
        ({"slurm": {"Prolog[0]": None}}, "slurm-prolog", "differs", "no Prolog"),
        ({"slurm": {"SuspendTime": None}}, "slurm-suspendtime", "differs", "no SuspendTime"),
        ({"slurm": {"SuspendTime": "600 sec"}}, "slurm-suspendtime", "differs", "20 minutes in the config"),
        ({"nodes": "gpu-dy-a-1|idle\n"}, "scaled-down", "could not look", "1 of 1 nodes are idle"),
        ({"facts": {"mount-lustre": "xfs"}}, "lustre-mounted", "differs", "/fsx is xfs"),
        ({"facts": {"mount-efs": "ext4"}}, "efs-mounted", "differs", "/efs is ext4"),
        ({"facts": {"script": "root -rwxrwxr-x"}}, "training-scripts", "differs", "root -rwxrwxr-x"),
        ({"facts": {"script": "ubuntu -rwxr-xr-x"}}, "training-scripts", "differs", "ubuntu"),
        ({"facts": {"script": ""}}, "training-scripts", "could not look", "does not show script"),
        ({"facts": {"bootstrap": "9 lines, 1 failed steps"}}, "bootstrap-steps", "differs", "1 failed"),
        ({"facts": {"bootstrap": "0 lines, 0 failed steps"}}, "bootstrap-steps", "differs", "0 lines"),
        ({"facts": {"bootstrap": "unreadable"}}, "bootstrap-steps", "could not look", "bootstrap"),
        ({"facts": {"cfn-init-errors": "2"}}, "cfn-init", "differs", "9.0 minutes, 2 errors"),
        ({"facts": {"cfn-init": "unreadable"}}, "cfn-init", "could not look", "only root"),
        ({"facts": {"pyxis-enabled": "no"}}, "containers", "differs", "pyxis-enabled: no"),
        ({"facts": {"pyxis": "no", "pyxis-enabled": "no"}}, "containers", "held", "pyxis: no"),
        ({"facts": {"topology": "auto, 3 leaves written, 0 read"}}, "topology", "differs", "0 read"),
        (
            amended("DescribeSecurityGroups", "SecurityGroups", IpPermissions=[ssh("0.0.0.0/0")]),
            "no-public-ssh",
            "differs",
            "1 rules",
        ),
        ({"DescribeSecurityGroups": DENIED}, "no-public-ssh", "could not look", "DescribeSecurityGroups"),
        (amended("DescribeVolumes", "Volumes", Encrypted=False), "encrypted-volumes", "differs", "0 of 1"),
        ({"DescribeVolumes": {"Volumes": []}}, "encrypted-volumes", "differs", "0 of 0"),
        ({"DescribeImages": {"Images": []}}, "image-stamps", "differs", "no available AMI"),
        (amended("DescribeImages", "Images", Tags=[]), "image-stamps", "differs", "no tag"),
        (
            amended("DescribeDataRepositoryAssociations", "Associations", Lifecycle="MISCONFIGURED"),
            *("bucket-links", "differs", "MISCONFIGURED"),
        ),
        ({"copies": ("out",)}, "bucket-to-lustre", "differs", "not within"),
        ({"copies": ("in",)}, "lustre-to-bucket", "differs", "not within"),
        ({"PutObject": DENIED}, "bucket-to-lustre", "could not look", "permission PutObject"),
        (amended("DescribeAlarms", "MetricAlarms", StateValue="ALARM"), "alarms", "differs", "HeadNodeDead"),
        (instance(MetadataOptions={"HttpTokens": "optional"}), "imdsv2", "differs", "optional"),
        (instance(InstanceType="u-3tb1.56xlarge"), "cost-so-far", "differs", "no price of u-3tb1"),
        ({"DescribeAlarms": {"MetricAlarms": []}}, "alarms", "differs", "0 alarms"),
        ({"ListMetrics": {"Metrics": []}}, "metrics", "differs", "without data: AWS/EC2"),
        ({"ListMetrics": DENIED}, "metrics", "could not look", "permission ListMetrics"),
    ):
        found = deployed(**change).results()
        one = found.pop(check)
        assert one.verdict == verdict
        assert seen in one.seen
        assert {each.id: each.seen for each in found.values() if each.verdict != "held"} == {}


def test_a_dashboard_that_draws_nothing_differs(deployed: Make) -> None:
    found = deployed(GetDashboard={"DashboardBody": '{"widgets": []}'}).results()
    assert (found["dashboard"].verdict, found["metrics"].verdict) == ("differs", "could not look")


def test_another_version_of_the_library_differs(deployed: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.verify.deploy.PCLUSTER_VERSION", "9.9.9")
    found = deployed().results()
    assert found["library-version"].verdict == found["layer"].verdict == "differs"


def test_a_head_node_near_its_time_limit_differs(deployed: Make) -> None:
    assert deployed(minutes=22.6).results()["head-node-time"].verdict == "differs"


def test_stacks_that_these_flags_do_not_need_hold(deployed: Make) -> None:
    missing = Refused("ValidationError", "Stack x does not exist")
    found = deployed(DescribeStackEvents=missing).results()
    assert found["accounting-stack-time"].seen == "no such stack: these flags need none"
    assert found["head-node-time"].verdict == "could not look"


def test_a_file_system_without_links_copies_nothing(deployed: Make) -> None:
    found = deployed(ListStackResources={"StackResourceSummaries": []}).results()
    assert found["bucket-links"].verdict == "held"
    assert found["bucket-to-lustre"].verdict == found["lustre-to-bucket"].verdict == "could not look"


def test_only_head_node_checks_need_run_command(deployed: Make) -> None:
    one = deployed(SendCommand=DENIED)
    found = {each.id: each.verdict for each in one.results().values()}
    assert {name for name, verdict in found.items() if verdict != "held"} == ON_HEAD_NODE
    assert set(found.values()) == {"could not look", "held"}


def test_a_check_impossible_in_a_rehearsal_says_so(deployed: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.verify.scene.Scene.is_rehearsal", True)
    found = deployed(copies=()).results()
    unseen = {check.id for check in CHECKS if check.only_on_aws}
    assert {key for key, each in found.items() if each.seen == "this is a rehearsal"} == unseen
    assert {each.verdict for key, each in found.items() if key not in unseen} == {"held"}


def test_check_ids_are_unique() -> None:
    checks = (*CHECKS, *NODE_CHECKS)
    assert len({check.id for check in checks}) == len(checks)
