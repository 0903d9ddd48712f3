"""`trainctl destroy --plan`: what is ours or others', how it is taken up again, and what is typed."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.account.stacks import DESCRIPTION
from ops.teardown.remaining_accounting import DATABASE_PREFIX
from ops.teardown.remaining_accounting import GROUP_PREFIX as ACCOUNTING_GROUPS
from ops.teardown.remaining_storage import GROUP_PREFIX as STORAGE_GROUPS
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.teardown.teardown_account import (
    BUCKET,
    CLUSTER,
    EFS,
    LUSTRE,
    NETWORK,
    OURS,
    STORAGE,
    THEIRS,
    Stacks,
    account_with,
    efs_system,
    everything,
    in_order,
    lustre_system,
    shown_plan,
)
from training_cluster.flags.account import CLUSTER_TAG
from training_cluster.stack_names import ACCOUNTING_STACK, STACK_IDS, STORAGE_STACK


def test_storage_of_a_deleted_stack_can_be_reused() -> None:
    shown = shown_plan(everything(stacks={"TrainingCluster-Network": NETWORK}))
    assert f"-c bucket_name={BUCKET} -c fsx_id={LUSTRE} -c efs_id={EFS}" in shown
    assert "There is no cluster training here." in shown
    assert "npx cdk destroy StorageStack" not in shown
    assert in_order(
        shown, f"--file-system-id {LUSTRE}", f"--file-system-id {EFS}", "cdk destroy NetworkStack"
    )


def test_existing_storage_stack_leaves_nothing_to_take_up() -> None:
    assert "-c fsx_id=" not in shown_plan(everything())


def test_what_is_not_ours_is_not_named() -> None:
    groups = {
        "sg-2": "OtherStack-StorageGroup",
        "sg-3": "TrainingCluster-Storage-StorageLustreSecurityGroupC4-y",
    }
    alike, logs = "trainingcluster-storage-storagebucket5cb7-y", "TrainingCluster-Network-TheirLogs1"
    others = everything(
        stacks={
            "TrainingCluster-Network": NETWORK,
            "OtherStack": {"Bucket": ("AWS::S3::Bucket", "theirs", "Retain")},
        },
        lustre=[lustre_system("fs-0ffffffffffffffff", tags=THEIRS)],
        efs=[efs_system("fs-0fffffffffffffff0", tags=[{"Key": CLUSTER_TAG, "Value": "training"}])],
        buckets=("theirs", "cdk-hnb659fds-assets-1-us-east-1", alike),
        groups=groups,
        log_groups=(logs,),
        theirs=("theirs", "cdk-hnb659fds-assets-1-us-east-1", alike, *groups, logs),
    )
    shown = shown_plan(others)
    named = ("fs-0ffffffffffffffff", "fs-0fffffffffffffff0", "theirs", alike, *groups, "OtherStack", logs)
    for theirs in named:
        assert theirs not in shown, "whatever it is called, without our tag it is theirs"


def test_a_bucket_with_unreadable_tags_is_not_ours() -> None:
    account = account_with(
        {"TrainingCluster-Network": NETWORK}, buckets=(BUCKET,), GetBucketTagging=Refused("AccessDenied")
    )
    assert BUCKET not in shown_plan(account)


def test_untagged_resources_of_our_stacks_are_ours() -> None:
    untagged = {"lustre": [lustre_system(tags=THEIRS)], "efs": [efs_system(tags=THEIRS)]}
    shown = shown_plan(everything(**untagged, theirs=(BUCKET, "sg-0aaaaaaaaaaaaaaaa", "sg-1")))
    for id_ in (LUSTRE, EFS, f"--bucket {BUCKET}", "--group-id sg-0aaaaaaaaaaaaaaaa"):
        assert id_ in shown


def test_logs_by_lambda_are_known_by_their_function() -> None:
    function = "TrainingCluster-Network-RestrictDefault-x"
    stacks: Stacks = {"TrainingCluster-Network": {"Restrict": ("AWS::Lambda::Function", function, None)}}
    log = f"/aws/lambda/{function}"
    alike = f"{log}-y"
    shown = shown_plan(account_with(stacks, log_groups=(log, alike), theirs=(log, alike)))
    assert f"--log-group-name {log}\n" in shown
    assert alike not in shown


def test_a_foreign_stack_with_our_name_is_reported() -> None:
    stacks: Stacks = {
        "TrainingCluster-Network": NETWORK,
        "TrainingCluster-Storage": STORAGE,
        "TrainingClusterStack": CLUSTER,
    }
    shown = shown_plan(everything(stacks=stacks, foreign=("TrainingCluster-Network",)))
    assert shown.startswith("TrainingCluster-Network is not Training Cluster's")
    assert "cdk destroy NetworkStack" not in shown
    assert "nat-0aaaaaaaaaaaaaaaa" not in shown
    assert "npx cdk destroy StorageStack" in shown


def test_a_stack_with_only_change_sets_is_ignored() -> None:
    assert shown_plan(account_with({"TrainingCluster-Network": {}}, status="REVIEW_IN_PROGRESS")) == (
        "There is nothing of Training Cluster in us-east-1."
    )


def test_several_fitting_file_systems_require_a_choice() -> None:
    second = "fs-0bbbbbbbbbbbbbbbb"
    shown = shown_plan(
        everything(
            stacks={"TrainingCluster-Network": NETWORK}, lustre=[lustre_system(), lustre_system(second)]
        )
    )
    assert f"  npx cdk deploy TrainingClusterStack -c bucket_name={BUCKET} -c efs_id={EFS}\n" in shown
    assert in_order(
        shown, "and with one of 2 values of fsx_id:\n", f"-c fsx_id={LUSTRE}\n", f"-c fsx_id={second}\n"
    )


def test_keeping_file_systems_forbids_destroying_their_network() -> None:
    warning = "Do not destroy NetworkStack as long as these file systems remain in it"
    shown = shown_plan(everything(stacks={"TrainingCluster-Network": NETWORK}))
    assert in_order(shown, "-c bucket_name=", warning, "DELETE_FAILED", f"{LUSTRE}, {EFS}")
    assert warning not in shown_plan(everything())
    assert warning not in shown_plan(account_with({"TrainingCluster-Network": NETWORK}))


def test_a_deleted_stacks_database_returns_with_its_secret() -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:AccountingPassword-x-AbCdEf"
    other = arn.replace("AbCdEf", "theirs")
    parameters, alike = (
        "trainingcluster-accounting-accountingparameters-x",
        "trainingcluster-accounting-accountingparameters-y",
    )
    answers: dict[str, Any] = {
        "ListSecrets": {"SecretList": [{"ARN": arn, "Tags": OURS}, {"ARN": other, "Tags": THEIRS}]},
        "DescribeDBClusterParameterGroups": {
            "DBClusterParameterGroups": [
                {"DBClusterParameterGroupName": name, "DBClusterParameterGroupArn": f"arn:{name}"}
                for name in (parameters, alike, "default.aurora-mysql8.0")
            ]
        },
        "rds.ListTagsForResource": lambda asked: {
            "TagList": OURS if asked["ResourceName"].endswith("-x") else THEIRS
        },
    }
    databases = ("trainingcluster-accounting-accountingdatabase-x",)
    shown = shown_plan(account_with({"TrainingCluster-Network": NETWORK}, databases=databases, **answers))
    assert f"-c accounting=db.cluster-x.us-east-1.rds.amazonaws.com:3306 -c accounting_secret={arn}" in shown
    assert f"aws secretsmanager delete-secret --secret-id {arn}" in shown
    assert f"--db-cluster-parameter-group-name {parameters}" in shown
    assert alike not in shown
    assert other not in shown


def _typed(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith(("aws ", "npx ", "for ", ".venv/"))]


def test_commands_mean_the_same_to_bash_and_zsh() -> None:
    typed = _typed(shown_plan(everything(stacks={"TrainingCluster-Network": NETWORK})))
    assert len(typed) >= 10
    for line in typed:
        bare = re.sub(r"'[^']*'", "", line)
        assert "#" not in bare, "a comment in an interactive zsh is an argument"
        assert not re.search(r"[][*?$]", bare), line


LINKS, SYSTEMS = "describe-data-repository-associations", "describe-file-systems"
TARGETS = "describe-mount-targets"


@pytest.mark.parametrize("which", [SYSTEMS, LINKS, TARGETS])
def test_a_wait_retries_cli_errors_60_times(which: str, tmp_path: Path) -> None:
    assert _asked(which, "Unable to locate credentials", tmp_path, code=253) == 60


@pytest.mark.parametrize(
    ("which", "said", "code"),
    [(SYSTEMS, "An error occurred (FileSystemNotFound)", 254), (LINKS, "0", 0), (TARGETS, "0", 0)],
)
def test_a_wait_ends_once_the_resource_is_gone(which: str, said: str, code: int, tmp_path: Path) -> None:
    assert _asked(which, said, tmp_path, code=code) == 1


def test_ten_links_are_not_taken_for_none(tmp_path: Path) -> None:
    assert _asked(LINKS, "10", tmp_path, code=0) == 60


def _asked(which: str, said: str, folder: Path, *, code: int) -> int:
    """Run a printed loop with a CLI of our own; how often it was asked."""
    # Without their stack, whose mount targets go with it.
    left = everything(stacks={"TrainingCluster-Network": NETWORK})
    (loop,) = (line for line in _typed(shown_plan(left)) if line.startswith("for ") and which in line)
    stdout_or_stderr = ">&2" if code else ""
    aws = f"aws() {{ echo asked >>asked; echo '{said}' {stdout_or_stderr}; return {code}; }}"
    script = f"{aws}; sleep() {{ :; }}; {loop}"
    subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=False, timeout=20)
    return len((folder / "asked").read_text().splitlines())


def test_retained_resources_have_names_the_plan_looks_for(
    synthesise: Callable[..., Any],
) -> None:
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


def test_retained_resources_carry_the_tag(synthesise: Callable[..., Any]) -> None:
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
