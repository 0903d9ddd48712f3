"""`trainctl destroy --plan`: what goes, what stays, what it costs, and how to delete the rest."""

import re
from typing import Any

import pytest

from ops.account.stacks import LIFT_PROTECTION
from ops.teardown import read_remaining
from ops.teardown.plan import read_plan
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.teardown.teardown_account import (
    ACCOUNTING,
    ALL,
    BUCKET,
    EFS,
    LUSTRE,
    NETWORK,
    Stacks,
    account_with,
    everything,
    in_order,
    lustre_system,
    shown_plan,
)
from training_cluster.cluster.progress import progress_parameter
from training_cluster.problems import ConfigurationError


def test_it_says_what_goes_with_the_cluster() -> None:
    shown = shown_plan(everything(nodes=("HeadNode", "Compute", "Compute")))
    goes = shown[: shown.index("What stays")]
    assert "npx cdk destroy TrainingClusterStack takes the cluster training" in goes
    assert "training  CREATE_COMPLETE  ParallelCluster's own stack" in goes
    assert "1 head node(s), 2 compute node(s): their jobs end" in goes
    assert "the key pair training-key" in goes
    assert LUSTRE not in goes


def test_it_says_what_stays_and_its_real_cost() -> None:
    shown = shown_plan(everything())
    stays = shown[shown.index("What stays") : shown.index("To delete everything")]
    # 0.05 x 730 h; 2400 GiB x 0.145; 10 GiB x 0.30.
    assert "costs about 388 USD a month" in stays
    assert re.search(r"nat-0a+  NAT gateway and its address +36\b", stays)
    assert re.search(rf"{LUSTRE}  FSx for Lustre, PERSISTENT_2, 2400 GiB, 125 MB/s a TiB +348\b", stays)
    assert re.search(rf"{EFS}  EFS, 10.0 GiB +3\b", stays)
    assert re.search(rf"{BUCKET}  bucket +-  0.023 for each GB in it, old versions too", stays)
    assert "TrainingCluster-Storage  CREATE_COMPLETE, termination protection on" in stays


def test_unconfirmed_and_unknown_prices_are_marked() -> None:
    faster = shown_plan(everything(lustre=[lustre_system(PerUnitStorageThroughput=250)]))
    assert "504  price unconfirmed" in faster
    other = shown_plan(
        everything(lustre=[lustre_system(DeploymentType="PERSISTENT_1", PerUnitStorageThroughput=50)])
    )
    assert "-  price not in the catalog" in other


def test_everything_is_deleted_in_the_order_aws_allows() -> None:
    shown = shown_plan(everything())
    assert in_order(
        shown,
        "npx cdk destroy TrainingClusterStack\n",
        f"{LIFT_PROTECTION} TrainingCluster-Storage",
        "npx cdk destroy StorageStack",
        f"--file-system-id {LUSTRE} --paths checkpoints\n",
        "--no-delete-data-in-file-system --association-id dra-0aaaaaaaaaaaaaaaa",
        f"aws fsx delete-file-system --file-system-id {LUSTRE}",
        f"aws efs delete-file-system --file-system-id {EFS}",
        "aws ec2 delete-security-group --group-id sg-0aaaaaaaaaaaaaaaa",
        f'Bucket("{BUCKET}").object_versions.delete()',
        f"aws s3api delete-bucket --bucket {BUCKET}",
        "npx cdk destroy NetworkStack",
    )
    assert "sg-1" not in shown


def test_a_loud_line_precedes_commands_that_delete_data() -> None:
    lines = shown_plan(everything()).splitlines()
    for command in ("aws fsx delete-file-system", "aws efs delete-file-system", "s3api delete-bucket"):
        (at,) = (number for number, line in enumerate(lines) if command in line)
        head = max(number for number, line in enumerate(lines[:at]) if line.startswith("# "))
        assert lines[head] == "# THE DATA IS GONE AFTER THIS", command


def test_mount_targets_go_by_name_without_their_stack() -> None:
    assert "delete-mount-target" not in shown_plan(everything())
    without = {name: stack for name, stack in ALL.items() if name != "TrainingCluster-Storage"}
    assert "delete-mount-target --mount-target-id fsmt-0aaaaaaaaaaaaaaaa" in shown_plan(
        everything(stacks=without)
    )


def test_another_cluster_on_the_network_goes_first() -> None:
    shown = shown_plan(everything(stacks=ALL | {"TrainingClusterStack-b": {}}))
    assert (
        "Another cluster uses the same network and storage: TrainingClusterStack-b  CREATE_COMPLETE" in shown
    )
    assert in_order(
        shown, "npx cdk destroy TrainingClusterStack -c cluster_name=b", "npx cdk destroy StorageStack"
    )


def test_only_logs_of_the_cluster_are_named() -> None:
    ours = (
        *("/aws/parallelcluster/training-202611211200", "TrainingClusterStack-ClusterOnEventLog1"),
        *("/aws/lambda/TrainingClusterStack-Provider1", "TrainingCluster-Network-FlowLogs1"),
    )
    others = ("/aws/parallelcluster/training-b-202611211200", "TrainingClusterStack-b-ClusterOnEventLog1")
    shared = "/aws/lambda/pcluster-CleanupResources-1"
    bucket = "parallelcluster-0123456789abcdef-v1-do-not-delete"
    stacks = ALL | {"TrainingClusterStack-b": {}}
    log_groups = (*ours, *others, shared)
    shown = shown_plan(
        everything(stacks=stacks, log_groups=log_groups, buckets=(BUCKET, bucket), theirs=(bucket,))
    )
    for name in ours:
        assert f"aws logs delete-log-group --log-group-name {name}\n" in shown
    for name in others:
        assert name not in shown
    assert in_order(
        shown, "delete them only if no cluster exists any more", shared, f"delete-bucket --bucket {bucket}"
    )


@pytest.mark.parametrize("is_there", [True, False])
def test_the_accounting_database_goes_before_the_network(is_there: bool) -> None:
    stacks = ALL | ({"TrainingCluster-Accounting": ACCOUNTING} if is_there else {})
    alike = "trainingcluster-accounting-accountingdatabase-y"
    databases = ("trainingcluster-accounting-accountingdatabase-x", alike)
    shown = shown_plan(everything(stacks=stacks, databases=databases, theirs=(alike,)))
    assert ("npx cdk destroy AccountingStack -c accounting=new" in shown) == is_there
    assert in_order(
        shown,
        "modify-db-cluster --no-deletion-protection",
        "delete-db-cluster --skip-final-snapshot --db-cluster-identifier trainingcluster-accounting-",
        "aws rds wait db-cluster-deleted",
        "npx cdk destroy NetworkStack",
    )
    assert "accounting database, 0.5 ACU at least" in shown
    assert alike not in shown


def test_a_half_made_deploy_has_a_plan_too() -> None:
    stacks: Stacks = {"TrainingCluster-Network": {}, "TrainingCluster-Storage": {}}
    shown = shown_plan(account_with(stacks, status="ROLLBACK_COMPLETE"))
    assert "There is no cluster training here." in shown
    assert in_order(
        shown, "--stack-name TrainingCluster-Storage", "destroy StorageStack", "destroy NetworkStack"
    )


def test_with_nothing_left_it_says_so() -> None:
    assert shown_plan(account_with()) == "There is nothing of Training Cluster in us-east-1."


def test_it_asks_and_changes_nothing() -> None:
    account = everything()
    shown_plan(account)
    assert {re.match("[A-Z][a-z]+", name)[0] for name in account.asked} == {"Describe", "List", "Get"}  # type: ignore[index]


def test_an_impossible_name_is_refused_without_any_call() -> None:
    account = account_with()
    with pytest.raises(ConfigurationError, match="cluster_name"):
        read_plan("no_such", account.client)
    assert account.asked == []


ASKED = (
    *("fsx.DescribeFileSystems", "efs.DescribeFileSystems", "DescribeMountTargets", "ListBuckets"),
    *("DescribeSecurityGroups", "DescribeDBClusters", "DescribeDBSubnetGroups", "ListSecrets"),
    *("DescribeSubnets", "DescribeImages", "ListImages", "ListImageRecipes", "ListComponents"),
    *("DescribeLogGroups", "GetParametersByPath", "DescribeInstances", "DescribeVpcEndpoints"),
)


def test_an_answer_cut_short_keeps_its_first_page() -> None:
    name = "/aws/parallelcluster/training-202611211200"
    page = {"logGroups": [{"logGroupName": name, "arn": f"arn:aws:logs:us-east-1:1:log-group:{name}:*"}]}

    def first_page_only(asked: dict[str, Any]) -> Any:
        return Refused("ThrottlingException", "slow") if "nextToken" in asked else page | {"nextToken": "2"}

    shown = shown_plan(everything(DescribeLogGroups=first_page_only))
    assert shown.startswith("THIS PLAN IS NOT COMPLETE.")
    assert f"aws logs delete-log-group --log-group-name {name}\n" in shown


@pytest.mark.parametrize("operation", ASKED)
def test_a_refusing_service_hides_only_its_own_part(operation: str) -> None:
    endpoint = ("AWS::EC2::VPCEndpoint", "vpce-0aaaaaaaaaaaaaaaa", None)
    stacks = ALL | {"TrainingCluster-Network": NETWORK | {"Endpoint": endpoint}}
    whole = shown_plan(everything(stacks=stacks))
    refused = shown_plan(everything(stacks=stacks, **{operation: Refused("AccessDeniedException", "no")}))
    first, why, *_ = refused.splitlines()
    assert first == "THIS PLAN IS NOT COMPLETE. These parts are unknown in us-east-1:"
    assert "may not do that" in why
    assert operation.rpartition(".")[2] in why
    all_steps, steps = (re.findall(r"^# \d+\. (.*)", each, re.MULTILINE) for each in (whole, refused))
    assert set(steps) <= set(all_steps)
    assert len(steps) >= 4
    assert "NOT COMPLETE" not in whole


def test_nothing_that_is_typed_opens_a_pager() -> None:
    assert in_order(shown_plan(everything()), " AWS_PAGER=\n", "\n# 1. ")


class _Parameters:
    """Systems Manager as a paginator, which notes the path that is asked."""

    path = ""

    def get_paginator(self, _operation: str) -> "_Parameters":
        return self

    def paginate(self, **asked: Any) -> list[dict[str, Any]]:
        self.path = asked["Path"]
        return []


def test_notes_are_read_where_the_provider_keeps_them() -> None:
    ssm = _Parameters()
    assert list(read_remaining._parameters(ssm, "b")) == []
    assert progress_parameter("TrainingClusterStack-b") == f"{ssm.path}/progress"


def test_deletion_policies_sort_storage_that_the_cluster_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def item(name: str, kind: str, **settings: Any) -> dict[str, Any]:
        return {"Name": name, "StorageType": kind, "MountDir": f"/{name}", f"{kind}Settings": settings}

    config = {
        "SharedStorage": [
            item("shared", "FsxLustre", FileSystemId=LUSTRE),
            item("apps", "Ebs", Size=200, DeletionPolicy="Retain"),
            item("scratch", "FsxLustre", StorageCapacity=1200, DeletionPolicy="Delete"),
            item("old", "Ebs", DeletionPolicy="Snapshot"),
        ]
    }
    monkeypatch.setattr("ops.teardown.plan.read_cluster_config", lambda _name, _client: config)
    shown = shown_plan(everything())
    stays = shown.index("What stays")
    gone = "FsxLustre scratch at /scratch, which the cluster made: ITS DATA ARE GONE"
    assert -1 < shown.find(gone) < stays
    assert -1 < shown.find("Ebs old at /old, which the cluster made: its data become a snapshot") < stays
    assert shown.find("Ebs apps at /apps, which the cluster made: yours when the cluster is gone") > stays
    assert "FsxLustre shared" not in shown
