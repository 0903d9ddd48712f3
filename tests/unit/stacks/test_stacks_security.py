"""A platform team's first questions: answers in the cluster config, and where cdk-nag has no rule.

`make check` runs cdk-nag's rules: public buckets, requests without TLS, EFS and databases in the clear,
ports that are open to the world, and wildcards in policies.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from tests.unit.stacks.app import App, Json, listed
from training_cluster.acknowledgements import flat


@pytest.fixture(params=["default", "everything", "brought"])
def app(request: pytest.FixtureRequest) -> App:
    found: App = request.getfixturevalue(request.param)
    return found


def _ingress(app: App) -> Iterator[tuple[str, Json]]:
    """Yield each rule with its group."""
    for id_, group in app.resources("AWS::EC2::SecurityGroup").items():
        for rule in group.get("SecurityGroupIngress", []):
            yield f"<{id_}.GroupId>", rule
    for rule in app.resources("AWS::EC2::SecurityGroupIngress").values():
        yield flat(rule["GroupId"]), rule


def _from_outside(app: App) -> list[Json]:
    """Return the rules that let others than nodes reach head and login nodes."""
    found = []
    for node in app.people_reach:
        networking = node["Networking"]
        # Without groups of ours ParallelCluster makes one, and opens 22 in it to Ssh.AllowedIps: the world.
        assert networking["SecurityGroups"]
        assert "AdditionalSecurityGroups" not in networking
        assert "AllowedIps" not in node.get("Ssh", {})
        for export in networking["SecurityGroups"]:
            group = (export, app.exported(export))
            found += [
                rule
                for of, rule in _ingress(app)
                if of in group and flat(rule.get("SourceSecurityGroupId", "")) not in group
            ]
    return found


def test_nobody_reaches_nodes_unless_ssh_from_says_so(default: App, brought: App, everything: App) -> None:
    assert _from_outside(default) == _from_outside(brought) == []
    allowed = _from_outside(everything)
    keys = ("IpProtocol", "FromPort", "ToPort", "CidrIp")
    assert [[rule[key] for key in keys] for rule in allowed] == [["tcp", 22, 22, "0.0.0.0/0"]] * 2


def test_only_that_rule_names_an_address_outside(app: App) -> None:
    networks = {rule["CidrIp"] for _, rule in _ingress(app) if "SourceSecurityGroupId" not in rule}
    assert networks <= {"10.0.0.0/16", "0.0.0.0/0"}


def test_metadata_disks_and_stores_are_protected(app: App) -> None:
    assert app.config["Imds"] == {"ImdsSupport": "v2.0"}
    assert app.config["HeadNode"]["Imds"] == {"Secured": True}
    for built_on in app.resources("AWS::ImageBuilder::InfrastructureConfiguration").values():
        assert built_on["InstanceMetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    disks = [app.config["HeadNode"], *(each["ComputeSettings"] for each in app.queues)]
    assert all(each["LocalStorage"]["RootVolume"]["Encrypted"] is True for each in disks)
    # The library encrypts login nodes' disks, and takes no word on it (cluster/config.py: LoginNodes).
    assert all("LocalStorage" not in pool for pool in app.people_reach[1:])
    lustre, efs = app.config["SharedStorage"]
    assert set(lustre["FsxLustreSettings"]) == {"FileSystemId"}, (
        "one without an id is ParallelCluster's to make"
    )
    assert efs["EfsSettings"]["FileSystemId"]
    assert efs["EfsSettings"]["EncryptionInTransit"] is True
    for system in app.resources("AWS::FSx::FileSystem").values():
        # Lustre of these kinds always is (FSx for Lustre guide, "Encrypting data at rest").
        assert system["FileSystemType"] == "LUSTRE"
        assert system["LustreConfiguration"]["DeploymentType"] in ("PERSISTENT_2", "SCRATCH_2")
    for recipe in app.resources("AWS::ImageBuilder::ImageRecipe").values():
        assert [each["Ebs"]["Encrypted"] for each in recipe["BlockDeviceMappings"]] == [True]
    for database in app.resources("AWS::RDS::DBInstance").values():
        assert database["PubliclyAccessible"] is False
    for bucket in app.resources("AWS::S3::Bucket").values():
        assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]


def test_no_policy_allows_everybody_or_reads_every_parameter(app: App) -> None:
    """Parameters have private keys and other teams' secrets."""
    for each in app.statements():
        if each["Effect"] == "Allow":
            assert "NotAction" not in each and "NotPrincipal" not in each
            assert each.get("Condition") or each.get("Principal") not in ("*", {"AWS": "*"})
            if any(fnmatchcase("ssm:GetParameter", action) for action in listed(each["Action"])):
                resources = [flat(resource) for resource in listed(each.get("Resource", "*"))]
                assert not [name for name in resources if name == "*" or name.endswith(":parameter/*")]


def test_nodes_have_policies_of_ours_alone(default: App, everything: App) -> None:
    for app in (default, everything):
        ours = {f"<{id_}>" for id_ in app.resources("AWS::IAM::ManagedPolicy")}
        nodes = [*app.people_reach, *app.queues]
        assert {each["Policy"] for node in nodes for each in node["Iam"]["AdditionalIamPolicies"]} <= ours


def test_the_private_subnet_has_no_way_in(default: App) -> None:
    (subnets,) = {tuple(each["Networking"]["SubnetIds"]) for each in default.queues}
    subnet = default.exported(*subnets)
    assert default.resources("AWS::EC2::Subnet")[subnet.strip("<>")]["MapPublicIpOnLaunch"] is False
    (table,) = (
        flat(each["RouteTableId"])
        for each in default.resources("AWS::EC2::SubnetRouteTableAssociation").values()
        if flat(each["SubnetId"]) == subnet
    )
    routes = default.resources("AWS::EC2::Route").values()
    assert [each for each in routes if flat(each["RouteTableId"]) == table and "GatewayId" in each] == []
