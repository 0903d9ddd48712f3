"""`trainctl destroy --plan`: what is ours or others', how it is taken up again, and what is typed."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.account.stacks import DESCRIPTION
from ops.teardown.accounting import DATABASE_PREFIX
from ops.teardown.accounting import GROUP_PREFIX as ACCOUNTING_GROUPS
from ops.teardown.storage import GROUP_PREFIX as STORAGE_GROUPS
from tests.unit.ops.own_account import BUCKET, OURS, OwnAccount
from tests.unit.ops.teardown.test_teardown import DATABASE, in_order, make_database, make_log_group, plan
from training_cluster.flags.account import CLUSTER_TAG
from training_cluster.stack_names import ACCOUNTING_STACK, FORMER_DEFAULT, STACK_IDS, STORAGE_STACK
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER


@pytest.fixture
def left(own: OwnAccount) -> OwnAccount:
    """An account in which the stacks of storage and cluster are deleted."""
    own.show_stacks({"TrainingCluster-Network": own.stacks["TrainingCluster-Network"]})
    return own


def untagged(own: OwnAccount) -> None:
    """Answer as if nothing had our tag."""
    theirs = [{"Key": "Name", "Value": "training-cluster"}]
    own.amend_all("fsx.DescribeFileSystems", "FileSystems", Tags=theirs)
    own.amend_all("efs.DescribeFileSystems", "FileSystems", Tags=[{"Key": CLUSTER_TAG, "Value": CLUSTER}])
    own.amend_all("DescribeSecurityGroups", "SecurityGroups", Tags=theirs)
    own.refuse("GetBucketTagging", "NoSuchTagSet")


def test_storage_of_a_deleted_stack_can_be_reused(left: OwnAccount) -> None:
    shown = plan(left)
    assert f"-c bucket_name={BUCKET} -c fsx_id={left.lustre} -c efs_id={left.efs}" in shown
    assert f"There is no cluster {CLUSTER} here." in shown
    assert "npx cdk destroy StorageStack" not in shown
    assert in_order(
        shown, f"--file-system-id {left.lustre}", f"--file-system-id {left.efs}", "cdk destroy NetworkStack"
    )


def test_keeping_file_systems_forbids_destroying_their_network(left: OwnAccount) -> None:
    warning = "Do not destroy NetworkStack as long as these file systems remain in it"
    both = f"{left.lustre}, {left.efs}"
    assert in_order(plan(left), "-c bucket_name=", warning, "DELETE_FAILED", both)
    untagged(left)
    assert warning not in plan(left)
    left.show_stacks()
    shown = plan(left)
    assert warning not in shown
    assert "-c fsx_id=" not in shown


def test_what_is_not_ours_is_not_named(left: OwnAccount) -> None:
    """Whatever it is called, without our tag it is theirs."""
    network = {"TrainingCluster-Network": left.stacks["TrainingCluster-Network"]}
    left.show_stacks(network | {"OtherStack": {"Bucket": ("AWS::S3::Bucket", "theirs", "Retain")}})
    logs = "TrainingCluster-Network-TheirLogs1"
    make_log_group(left, logs)
    untagged(left)
    shown = plan(left)
    for theirs in (left.lustre, left.efs, BUCKET, left.lustre_group, "OtherStack", "theirs", logs):
        assert theirs not in shown
    left.refuse("GetBucketTagging", "AccessDenied")
    assert BUCKET not in plan(left)


def test_untagged_resources_of_our_stacks_are_ours(everything: OwnAccount) -> None:
    untagged(everything)
    shown = plan(everything)
    ids = (everything.lustre, everything.efs, f"--bucket {BUCKET}", f"--group-id {everything.lustre_group}")
    for id_ in ids:
        assert id_ in shown


def test_logs_by_lambda_are_known_by_their_function(own: OwnAccount) -> None:
    function = "TrainingCluster-Network-RestrictDefault-x"
    own.show_stacks({"TrainingCluster-Network": {"Restrict": ("AWS::Lambda::Function", function, None)}})
    log = f"/aws/lambda/{function}"
    alike = f"{log}-y"
    for name in (log, alike):
        make_log_group(own, name)
    shown = plan(own)
    assert f"--log-group-name {log}\n" in shown
    assert alike not in shown


def test_logs_of_the_former_default_are_known(left: OwnAccount) -> None:
    """The stack is gone, and with it the record of which of its two names the cluster had."""
    ours, theirs = (f"/aws/parallelcluster/{FORMER_DEFAULT}-20261121120{minute}" for minute in (0, 1))
    make_log_group(left, ours, is_ours=True, of=FORMER_DEFAULT)
    make_log_group(left, theirs)
    shown = plan(left)
    assert f"--log-group-name {ours}\n" in shown
    assert theirs not in shown


def test_foreign_and_unmade_stacks_are_not_ours(own: OwnAccount) -> None:
    own.show_stacks(foreign=("TrainingCluster-Network",))
    shown = plan(own)
    assert shown.startswith("TrainingCluster-Network is not Training Cluster's")
    assert "cdk destroy NetworkStack" not in shown
    assert own.nat not in shown
    assert "npx cdk destroy StorageStack" in shown
    own.show_stacks(status="REVIEW_IN_PROGRESS")
    untagged(own)
    assert plan(own) == "There is nothing of Training Cluster in us-east-1."


def test_several_fitting_file_systems_require_a_choice(left: OwnAccount) -> None:
    second = "fs-0bbbbbbbbbbbbbbbb"
    left.amend(
        "fsx.DescribeFileSystems",
        lambda said: said["FileSystems"].append(said["FileSystems"][0] | {"FileSystemId": second}),
    )
    shown = plan(left)
    assert f"  trainctl deploy --cluster {CLUSTER} -c bucket_name={BUCKET} -c efs_id={left.efs}\n" in shown
    assert in_order(
        shown,
        *("and with one of 2 values of fsx_id:\n", f"-c fsx_id={left.lustre}\n", f"-c fsx_id={second}\n"),
    )


def test_a_deleted_stacks_database_returns_with_its_secret(left: OwnAccount) -> None:
    secrets, rds = left.client("secretsmanager"), left.client("rds")
    arn, other = (
        secrets.create_secret(Name=name, SecretString="-", Tags=tags)["ARN"]
        for name, tags in (("AccountingPassword", OURS), ("Theirs", []))
    )
    for each in (arn, other):
        left.later(secrets.delete_secret, SecretId=each, ForceDeleteWithoutRecovery=True)
    parameters, alike = (f"trainingcluster-accounting-accountingparameters-{each}" for each in "xy")
    for name, tags in ((parameters, OURS), (alike, [])):
        rds.create_db_cluster_parameter_group(
            DBClusterParameterGroupName=name,
            DBParameterGroupFamily="aurora-mysql8.0",
            Description="-",
            Tags=tags,
        )
        left.later(rds.delete_db_cluster_parameter_group, DBClusterParameterGroupName=name)
    make_database(left, DATABASE, is_ours=True)
    shown = plan(left)
    assert re.search(rf"-c accounting={DATABASE}\.\S+:3306 -c accounting_secret={arn}", shown)
    assert f"aws secretsmanager delete-secret --secret-id {arn}" in shown
    assert f"--db-cluster-parameter-group-name {parameters}" in shown
    assert alike not in shown
    assert other not in shown


def _typed(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith(("aws ", "npx ", "for ", ".venv/"))]


def test_commands_mean_the_same_to_bash_and_zsh(left: OwnAccount) -> None:
    typed = _typed(plan(left))
    assert len(typed) >= 10
    for line in typed:
        bare = re.sub(r"'[^']*'", "", line)
        assert "#" not in bare, "a comment in an interactive zsh is an argument"
        assert not re.search(r"[][*?$]", bare), line


LINKS, SYSTEMS = "describe-data-repository-associations", "describe-file-systems"
TARGETS = "describe-mount-targets"


@pytest.mark.parametrize(
    ("which", "said", "code", "times"),
    [
        *((each, "Unable to locate credentials", 253, 60) for each in (SYSTEMS, LINKS, TARGETS)),
        (SYSTEMS, "An error occurred (FileSystemNotFound)", 254, 1),
        *((LINKS, "0", 0, 1), (TARGETS, "0", 0, 1), (LINKS, "10", 0, 60)),
    ],
)
def test_a_wait_ends_once_the_resource_is_gone(
    left: OwnAccount, tmp_path: Path, *, which: str, said: str, code: int, times: int
) -> None:
    (loop,) = (line for line in _typed(plan(left)) if line.startswith("for ") and which in line)
    stdout_or_stderr = ">&2" if code else ""
    aws = f"aws() {{ echo asked >>asked; echo '{said}' {stdout_or_stderr}; return {code}; }}"
    script = f"{aws}; sleep() {{ :; }}; {loop}"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=20)
    assert len((tmp_path / "asked").read_text().splitlines()) == times


def test_retained_resources_have_names_and_tags(synthesise: Callable[..., Any]) -> None:
    """CloudFormation's names begin with stack and logical id, and every stack says whose it is."""
    stacks = synthesise(accounting="new")
    for name, prefix in {STORAGE_STACK: STORAGE_GROUPS, ACCOUNTING_STACK: ACCOUNTING_GROUPS}.items():
        for logical_id in stacks[STACK_IDS[name]].find_resources("AWS::EC2::SecurityGroup"):
            assert f"{name}-{logical_id}".startswith(prefix)
    for type_ in ("AWS::RDS::DBSubnetGroup", "AWS::RDS::DBClusterParameterGroup"):
        for logical_id in stacks["AccountingStack"].find_resources(type_):
            assert f"TrainingCluster-Accounting-{logical_id}".lower().startswith(DATABASE_PREFIX)
    for template in stacks.values():
        assert template.to_json()["Description"].startswith(DESCRIPTION)
    looked_for = {"AWS::FSx::FileSystem", "AWS::EFS::FileSystem", "AWS::S3::Bucket", "AWS::RDS::DBCluster"}
    looked_for |= {"AWS::RDS::DBSubnetGroup", "AWS::RDS::DBClusterParameterGroup", "AWS::EC2::RouteTable"}
    looked_for |= {"AWS::EC2::SecurityGroup", "AWS::EC2::Subnet", "AWS::SecretsManager::Secret"}
    found = set()
    for name in ("StorageStack", "AccountingStack"):
        for resource in synthesise(accounting="new")[name].to_json()["Resources"].values():
            if resource["Type"] in looked_for:
                found.add(resource["Type"])
                tags = resource["Properties"].get("Tags") or resource["Properties"]["FileSystemTags"]
                assert OURS[0] in tags
    assert found == looked_for
