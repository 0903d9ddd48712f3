"""`trainctl destroy --plan`: what goes, what stays, what it costs, and how to delete the rest."""

import re
from typing import Any

import pytest

from ops.account.stacks import LIFT_PROTECTION
from ops.teardown.plan import read_plan, render_plan
from tests.in_process import aws
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.own_account import BUCKET, OURS, OwnAccount, Resources
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.problems import ConfigurationError
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER
from training_cluster.stack_names import progress_parameter

DATABASE = "trainingcluster-accounting-accountingdatabase-x"
ACCOUNTING: Resources = {
    "AccountingDatabaseWriter": ("AWS::RDS::DBInstance", "writer", "Retain"),
    "AccountingDatabase": ("AWS::RDS::DBCluster", DATABASE, "Retain"),
    "AccountingSubnet1": ("AWS::EC2::Subnet", "subnet-0aaaaaaaaaaaaaaaa", "Retain"),
}


def plan(own: OwnAccount, cluster_name: str = CLUSTER) -> str:
    return "\n".join(render_plan(read_plan(cluster_name, own.client)))


def in_order(shown: str, *parts: str) -> bool:
    found = [shown.find(part) for part in parts]
    return -1 not in found and found == sorted(found)


def lustre(own: OwnAccount, **configuration: Any) -> None:
    """Answer with another configuration of the Lustre file system."""
    own.amend(
        "fsx.DescribeFileSystems",
        lambda said: said["FileSystems"][0]["LustreConfiguration"].update(configuration),
    )


def make_log_group(own: OwnAccount, name: str, *, is_ours: bool = False, of: str = SHARED) -> None:
    logs = own.client("logs")
    logs.create_log_group(logGroupName=name, tags={CLUSTER_TAG: of} if is_ours else {})
    own.later(logs.delete_log_group, logGroupName=name)


def make_bucket(own: OwnAccount, name: str) -> None:
    own.client("s3").create_bucket(Bucket=name)
    own.later(own.client("s3").delete_bucket, Bucket=name)


def make_database(own: OwnAccount, name: str, *, is_ours: bool) -> None:
    rds = own.client("rds")
    rds.create_db_cluster(
        DBClusterIdentifier=name,
        Engine="aurora-mysql",
        MasterUsername="slurm",
        MasterUserPassword="password",
        Tags=OURS * is_ours,
    )
    own.later(rds.delete_db_cluster, DBClusterIdentifier=name, SkipFinalSnapshot=True)


def test_it_says_what_goes_with_the_cluster(everything: OwnAccount) -> None:
    tags = ({"Key": "parallelcluster:node-type", "Value": kind} for kind in ("HeadNode", *["Compute"] * 2))
    instances = [{"Tags": [each]} for each in tags]
    everything.account.answers["DescribeInstances"] = {"Reservations": [{"Instances": instances}]}
    shown = plan(everything)
    goes = shown[: shown.index("What stays")]
    assert f"npx cdk destroy TrainingClusterStack takes the cluster {CLUSTER}" in goes
    assert "\n  TrainingClusterStack  CREATE_COMPLETE\n" in goes
    assert f"{CLUSTER}  CREATE_COMPLETE  ParallelCluster's own stack" in goes
    assert "1 head node(s), 2 compute node(s): their jobs end" in goes
    assert f"the key pair {CLUSTER}-key" in goes
    assert everything.lustre not in goes


def test_it_says_what_stays_and_its_real_cost(everything: OwnAccount) -> None:
    size = {"SizeInBytes": {"Value": 10 * 2**30}}
    everything.amend("efs.DescribeFileSystems", lambda said: said["FileSystems"][0].update(size))
    lustre(everything, PerUnitStorageThroughput=125)
    shown = plan(everything)
    stays = shown[shown.index("What stays") : shown.index("To delete everything")]
    # 0.05 x 730 h; 1200 GiB x 0.145; 10 GiB x 0.30.
    assert "costs about 214 USD a month" in stays
    assert re.search(rf"{everything.nat}  NAT gateway and its address +36\b", stays)
    lustre_line = f"{everything.lustre}  FSx for Lustre, PERSISTENT_2, 1200 GiB, 125 MB/s a TiB"
    assert re.search(rf"{lustre_line} +174$", stays, re.MULTILINE)
    assert re.search(rf"{everything.efs}  EFS, 10.0 GiB +3\b", stays)
    assert re.search(rf"{BUCKET}  bucket +-  0.023 for each GB in it, old versions too", stays)
    assert "TrainingCluster-Storage  CREATE_COMPLETE, termination protection on" in stays


def test_unconfirmed_and_unknown_prices_are_marked(everything: OwnAccount) -> None:
    assert "252  price unconfirmed" in plan(everything)
    lustre(everything, DeploymentType="PERSISTENT_1", PerUnitStorageThroughput=50)
    assert "-  price not in the catalog" in plan(everything)


def test_everything_is_deleted_in_the_order_aws_allows(everything: OwnAccount) -> None:
    everything.account.asked.clear()
    shown = plan(everything)
    assert in_order(
        shown,
        " AWS_PAGER=\n",
        "\n# 1. ",
        "npx cdk destroy TrainingClusterStack\n",
        f"{LIFT_PROTECTION} TrainingCluster-Storage",
        "npx cdk destroy StorageStack",
        f"--file-system-id {everything.lustre} --paths checkpoints\n",
        f"--no-delete-data-in-file-system --association-id {everything.link}",
        f"aws fsx delete-file-system --file-system-id {everything.lustre}",
        f"aws efs delete-file-system --file-system-id {everything.efs}",
        f"aws ec2 delete-security-group --group-id {everything.lustre_group}",
        f'Bucket("{BUCKET}").object_versions.delete()',
        f"aws s3api delete-bucket --bucket {BUCKET}",
        "npx cdk destroy NetworkStack",
    )
    assert everything.nodes not in shown
    assert "image" not in shown.lower()
    assert everything.is_untouched
    assert {"DescribeSnapshots", "DescribeLaunchTemplateVersions"}.isdisjoint(everything.account.asked)
    lines = plan(everything).splitlines()
    for command in ("aws fsx delete-file-system", "aws efs delete-file-system", "s3api delete-bucket"):
        (at,) = (number for number, line in enumerate(lines) if command in line)
        head = max(number for number, line in enumerate(lines[:at]) if line.startswith("# "))
        assert lines[head] == "# THE DATA IS GONE AFTER THIS", command


def test_mount_targets_go_by_name_without_their_stack(everything: OwnAccount) -> None:
    assert "delete-mount-target" not in plan(everything)
    stacks = everything.stacks
    del stacks["TrainingCluster-Storage"]
    everything.show_stacks(stacks)
    assert f"delete-mount-target --mount-target-id {everything.mount_target}" in plan(everything)


def test_another_cluster_on_the_network_goes_first(own: OwnAccount) -> None:
    own.show_stacks(own.stacks | {"TrainingClusterStack-b": {}})
    shown = plan(own)
    assert "Another cluster uses the same network and storage: TrainingClusterStack-b " in shown
    assert in_order(
        shown, "npx cdk destroy TrainingClusterStack -c cluster_name=b", "npx cdk destroy StorageStack"
    )


def test_only_records_of_the_cluster_are_named(own: OwnAccount) -> None:
    ours = (
        *(f"/aws/parallelcluster/{CLUSTER}-202611211200", "TrainingClusterStack-ClusterOnEventLog1"),
        *("/aws/lambda/TrainingClusterStack-Provider1", "TrainingCluster-Network-FlowLogs1"),
    )
    others = (f"/aws/parallelcluster/{CLUSTER}-b-202611211200", "TrainingClusterStack-b-ClusterOnEventLog1")
    shared = "/aws/lambda/pcluster-CleanupResources-1"
    bucket = "parallelcluster-0123456789abcdef-v1-do-not-delete"
    own.show_stacks(own.stacks | {"TrainingClusterStack-b": {}})
    for name in (*ours, *others, shared):
        make_log_group(own, name, is_ours=name in ours)
    make_bucket(own, bucket)
    notes = [progress_parameter(f"TrainingClusterStack{each}") for each in ("", "-b")]
    for name in notes:
        own.client("ssm").put_parameter(Name=name, Value="-", Type="String")
        own.later(own.client("ssm").delete_parameter, Name=name)
    shown = plan(own)
    for name in ours:
        assert f"aws logs delete-log-group --log-group-name {name}\n" in shown
    for name in others:
        assert name not in shown
    assert f"aws ssm delete-parameter --name {notes[0]}\n" in shown
    assert notes[1] not in shown
    assert in_order(
        shown, "delete them only if no cluster exists any more", shared, f"delete-bucket --bucket {bucket}"
    )


@pytest.mark.parametrize("is_there", [True, False])
def test_the_accounting_database_goes_before_the_network(own: OwnAccount, *, is_there: bool) -> None:
    own.show_stacks(own.stacks | ({"TrainingCluster-Accounting": ACCOUNTING} if is_there else {}))
    alike = DATABASE.replace("-x", "-y")
    make_database(own, DATABASE, is_ours=True)
    make_database(own, alike, is_ours=False)
    shown = plan(own)
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


def test_a_half_made_deploy_has_a_plan_too(own: OwnAccount) -> None:
    stacks: dict[str, Resources] = {"TrainingCluster-Network": {}, "TrainingCluster-Storage": {}}
    own.show_stacks(stacks, status="ROLLBACK_COMPLETE")
    shown = plan(own)
    assert f"There is no cluster {CLUSTER} here." in shown
    assert in_order(
        shown, "--stack-name TrainingCluster-Storage", "destroy StorageStack", "destroy NetworkStack"
    )


def test_with_nothing_left_it_says_so() -> None:
    aws().empty()
    nothing = "There is nothing of Training Cluster in us-east-1."
    client = Account(real=True).client
    assert "\n".join(render_plan(read_plan(CLUSTER, client))) == nothing


def test_an_impossible_name_is_refused_without_any_call(own: OwnAccount) -> None:
    with pytest.raises(ConfigurationError, match="cluster_name"):
        read_plan("no_such", own.client)
    assert own.account.asked == []


ASKED = (
    *("fsx.DescribeFileSystems", "efs.DescribeFileSystems", "DescribeMountTargets", "ListBuckets"),
    *("DescribeSecurityGroups", "DescribeDBClusters", "DescribeDBSubnetGroups", "ListSecrets"),
    *("DescribeSubnets", "DescribeImages", "ListImages", "ListImageRecipes", "ListComponents"),
    *("DescribeLogGroups", "GetParametersByPath", "DescribeInstances", "DescribeVpcEndpoints"),
)


def test_an_answer_cut_short_keeps_its_first_page(everything: OwnAccount) -> None:
    name = f"/aws/parallelcluster/{CLUSTER}-202611211200"
    page = {"logGroups": [{"logGroupName": name, "arn": f"arn:aws:logs:us-east-1:1:log-group:{name}:*"}]}

    def first_page_only(asked: dict[str, Any]) -> Any:
        return Refused("ThrottlingException", "slow") if "nextToken" in asked else page | {"nextToken": "2"}

    everything.account.answers["DescribeLogGroups"] = first_page_only
    shown = plan(everything)
    assert shown.startswith("THIS PLAN IS NOT COMPLETE.")
    assert f"aws logs delete-log-group --log-group-name {name}\n" in shown


@pytest.mark.parametrize("operation", ASKED)
def test_a_refusing_service_hides_only_its_own_part(own: OwnAccount, operation: str) -> None:
    endpoint = ("AWS::EC2::VPCEndpoint", own.s3_endpoints[0], None)
    network = own.stacks["TrainingCluster-Network"]
    own.show_stacks(own.stacks | {"TrainingCluster-Network": {**network, "Endpoint": endpoint}})
    whole = plan(own)
    own.refuse(operation, "AccessDeniedException", "no")
    refused = plan(own)
    first, why, *_ = refused.splitlines()
    assert first == "THIS PLAN IS NOT COMPLETE. These parts are unknown in us-east-1:"
    assert "may not do that" in why
    assert operation.rpartition(".")[2] in why
    all_steps, steps = (re.findall(r"^# \d+\. (.*)", each, re.MULTILINE) for each in (whole, refused))
    assert set(steps) <= set(all_steps)
    assert len(steps) >= 4
    assert "NOT COMPLETE" not in whole


def test_deletion_policies_sort_storage_that_the_cluster_made(
    everything: OwnAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    def item(name: str, kind: str, **settings: Any) -> dict[str, Any]:
        return {"Name": name, "StorageType": kind, "MountDir": f"/{name}", f"{kind}Settings": settings}

    config = {
        "SharedStorage": [
            item("shared", "FsxLustre", FileSystemId=everything.lustre),
            item("apps", "Ebs", Size=200, DeletionPolicy="Retain"),
            item("scratch", "FsxLustre", StorageCapacity=1200, DeletionPolicy="Delete"),
            item("old", "Ebs", DeletionPolicy="Snapshot"),
        ]
    }
    monkeypatch.setattr("ops.teardown.plan.read_cluster_config", lambda _name, _client: config)
    shown = plan(everything)
    stays = shown.index("What stays")
    gone = "FsxLustre scratch at /scratch, which the cluster made: ITS DATA ARE GONE"
    assert -1 < shown.find(gone) < stays
    assert -1 < shown.find("Ebs old at /old, which the cluster made: its data become a snapshot") < stays
    assert shown.find("Ebs apps at /apps, which the cluster made: yours when the cluster is gone") > stays
    assert "FsxLustre shared" not in shown
