"""Flags that bring their own: p3dn's image, a network that exists. In order, on one local AWS."""

import pytest

from rehearsal.deployed import read_deployed_cluster
from tests.slow.account import Account
from tests.slow.conftest import Cloud
from training_cluster.flags.cluster import PCLUSTER_VERSION

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

PARAMETER = f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/ubuntu2404/volta"


@pytest.fixture(scope="module")
def account(cloud: Cloud) -> Account:
    return Account(cloud.address)


@pytest.fixture(scope="module")
def flags(account: Account) -> tuple[str, ...]:
    network = account.network
    return (
        "family=p3dn",
        "cpu_queue=on",
        f"vpc_id={network.vpc}",
        f"public_subnet_id={network.public}",
        f"private_subnet_id={network.private}",
    )


def test_p3dn_is_deployed_with_an_image_of_its_own_into_the_network_that_was_there(
    cloud: Cloud, account: Account, flags: tuple[str, ...]
) -> None:
    cloud.deploy(*flags)
    image = cloud.client("ssm").get_parameter(Name=PARAMETER)["Parameter"]["Value"]
    config = read_deployed_cluster(cloud.address, "training").config
    gpu, cpu = config["Scheduling"]["SlurmQueues"]
    assert gpu["Image"] == {"CustomAmi": image}
    assert "Image" not in cpu
    assert gpu["Networking"]["SubnetIds"] == cpu["Networking"]["SubnetIds"] == [account.network.private]
    assert config["HeadNode"]["Networking"]["SubnetId"] == account.network.public


def test_an_own_network_is_used_unchanged_but_for_one_security_group(cloud: Cloud, account: Account) -> None:
    resources = account.client("cloudformation").describe_stack_resources(StackName="TrainingCluster-Network")
    types = {each["ResourceType"] for each in resources["StackResources"]}
    assert {each for each in types if each.startswith("AWS::EC2::")} == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    assert system["SubnetIds"] == [account.network.private]
    (target,) = cloud.client("efs").describe_file_systems()["FileSystems"]
    (mount,) = cloud.client("efs").describe_mount_targets(FileSystemId=target["FileSystemId"])["MountTargets"]
    assert mount["SubnetId"] == account.network.private


def test_the_bucket_and_lustre_are_linked(cloud: Cloud) -> None:
    links = cloud.client("fsx").describe_data_repository_associations()["Associations"]
    assert {link["FileSystemPath"]: set(link["S3"]) for link in links} == {
        "/datasets": {"AutoImportPolicy"},
        "/checkpoints": {"AutoExportPolicy"},
    }


def test_destroying_the_cluster_leaves_the_network_that_was_there(
    cloud: Cloud, account: Account, flags: tuple[str, ...]
) -> None:
    cloud.destroy(*flags)
    assert cloud.stack("training") is None
    assert account.client("ec2").describe_vpcs(VpcIds=[account.network.vpc])["Vpcs"]
