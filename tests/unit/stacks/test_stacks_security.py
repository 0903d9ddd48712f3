"""A platform team's first questions, proven of the templates; every proof is shown to find its fault."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.unit.stacks.encryption_proofs import topics_in_the_clear, unencrypted
from tests.unit.stacks.parameter_proofs import parameters_of_others
from tests.unit.stacks.security_proofs import (
    App,
    Json,
    Proof,
    efa_in_public,
    imds_v1,
    open_to_ssh,
    open_to_the_world,
    public_data,
    wide_rights,
)
from tools.synth_families import OTHERS
from training_cluster.catalog.families import family_names
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]
Break = Callable[[App], Any]

SSH = ("ssh_from", "ssh_from_anywhere")
APPS = {
    "default": {},
    "trn1, homes on EFS": {"family": "trn1", "home": "efs"},
    "m6i, without EFA": {"family": "m6i", "login_nodes": "1"},
    "another cluster": {"cluster_name": "other", "layer": "hosted", "zone": "use1-az4"},
    **{
        name: {flag: value for flag, value in flags.items() if flag not in SSH}
        for name, flags in OTHERS.items()
    },
}
PROOFS: tuple[Proof, ...] = (
    *(open_to_the_world, public_data, wide_rights, unencrypted, topics_in_the_clear),
    *(efa_in_public, open_to_ssh, imds_v1, parameters_of_others),
)


@pytest.fixture
def app(synthesise: Synthesise) -> Callable[..., App]:
    """Return a function that makes a new app for flags, to be broken."""

    def make(**flags: str) -> App:
        return App.of({stack: deepcopy(each.to_json()) for stack, each in synthesise(**flags).items()})

    return make


@pytest.mark.slow
@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
@pytest.mark.parametrize("name", APPS)
def test_it_holds(app: Callable[..., App], name: str, proof: Proof) -> None:
    assert proof(app(**APPS[name])) == []


def first(app: App, kind: str) -> Json:
    """Return the properties of the first resource of a type, to be changed."""
    return next(properties for _, properties in app.resources(kind))


def add(app: App, kind: str, properties: Json) -> None:
    app.templates["NetworkStack"]["Resources"]["Added"] = {"Type": kind, "Properties": properties}


def add_rule(app: App, **rule: object) -> None:
    properties = {"GroupId": {"Fn::GetAtt": [node_group(app), "GroupId"]}, "IpProtocol": "tcp", **rule}
    add(app, "AWS::EC2::SecurityGroupIngress", properties)


def node_group(app: App) -> str:
    (export,) = app.config["HeadNode"]["Networking"]["SecurityGroups"]
    return app.exported(export).strip("<>").partition(".")[0]


def allow(app: App, **changes: object) -> None:
    document = first(app, "AWS::IAM::Policy")["PolicyDocument"]
    document["Statement"].append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"} | changes)


def route_to_the_internet(app: App) -> None:
    table = next(
        each["RouteTableId"]
        for name, each in app.resources("AWS::EC2::SubnetRouteTableAssociation")
        if "Private" in name
    )
    add(app, "AWS::EC2::Route", {"RouteTableId": table, "GatewayId": {"Ref": "Gateway"}})


def queue(app: App) -> Json:
    return app.queues[0]


BROKEN: dict[str, tuple[Proof, Break]] = {
    "a rule for everybody": (open_to_the_world, lambda app: add_rule(app, CidrIp="0.0.0.0/0")),
    "a rule for everybody by IPv6": (open_to_the_world, lambda app: add_rule(app, CidrIpv6="::/0")),
    "a rule for half the world": (open_to_the_world, lambda app: add_rule(app, CidrIp="128.0.0.0/1")),
    "a rule for who knows whom": (open_to_the_world, lambda app: add_rule(app, CidrIp={"Ref": "Some"})),
    "a rule for a prefix list": (open_to_the_world, lambda app: add_rule(app, SourcePrefixListId="pl-1")),
    "a rule in a group itself": (
        open_to_the_world,
        lambda app: first(app, "AWS::EC2::SecurityGroup").update(
            SecurityGroupIngress=[{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}]
        ),
    ),
    "a bucket without locks": (
        public_data,
        lambda app: first(app, "AWS::S3::Bucket").pop("PublicAccessBlockConfiguration"),
    ),
    "a bucket with one lock open": (
        public_data,
        lambda app: first(app, "AWS::S3::Bucket")["PublicAccessBlockConfiguration"].update(
            RestrictPublicBuckets=False
        ),
    ),
    "a bucket without TLS": (
        public_data,
        lambda app: first(app, "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"].clear(),
    ),
    "a public database": (
        public_data,
        lambda app: first(app, "AWS::RDS::DBInstance").update(PubliclyAccessible=True),
    ),
    "every action": (wide_rights, lambda app: allow(app, Action="*")),
    "a service": (wide_rights, lambda app: allow(app, Action=["s3:GetObject", "ec2:*"])),
    "all actions but some": (
        wide_rights,
        lambda app: first(app, "AWS::IAM::Policy")["PolicyDocument"]["Statement"].append(
            {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
        ),
    ),
    "a right for everybody": (
        wide_rights,
        lambda app: first(app, "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"].append(
            {"Effect": "Allow", "Action": "s3:GetObject", "Principal": "*", "Resource": "*"}
        ),
    ),
    "a role's own policy": (
        wide_rights,
        lambda app: first(app, "AWS::IAM::Role").update(
            Policies=[{"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}}]
        ),
    ),
    "a plain bucket": (unencrypted, lambda app: first(app, "AWS::S3::Bucket").pop("BucketEncryption")),
    "a plain EFS": (unencrypted, lambda app: first(app, "AWS::EFS::FileSystem").update(Encrypted=False)),
    "a plain database": (
        unencrypted,
        lambda app: first(app, "AWS::RDS::DBCluster").update(StorageEncrypted=False),
    ),
    "a database of its own": (
        unencrypted,
        lambda app: first(app, "AWS::RDS::DBInstance").pop("DBClusterIdentifier"),
    ),
    "a file system of another kind": (
        unencrypted,
        lambda app: first(app, "AWS::FSx::FileSystem").update(FileSystemType="WINDOWS"),
    ),
    "a store that nobody placed": (unencrypted, lambda app: add(app, "AWS::DynamoDB::Table", {})),
    "a plain disk of the head node": (
        unencrypted,
        lambda app: app.config["HeadNode"]["LocalStorage"]["RootVolume"].update(Encrypted=False),
    ),
    "a plain disk of a queue": (
        unencrypted,
        lambda app: queue(app)["ComputeSettings"]["LocalStorage"].pop("RootVolume"),
    ),
    "a mount in the clear": (
        unencrypted,
        lambda app: app.config["SharedStorage"][1]["EfsSettings"].pop("EncryptionInTransit"),
    ),
    "a file system of ParallelCluster's": (
        unencrypted,
        lambda app: app.config["SharedStorage"][0]["FsxLustreSettings"].pop("FileSystemId"),
    ),
    "a topic without TLS": (
        topics_in_the_clear,
        lambda app: first(app, "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"].pop(0),
    ),
    "EFA in the public subnet": (
        efa_in_public,
        lambda app: queue(app)["Networking"].update(
            SubnetIds=[app.config["HeadNode"]["Networking"]["SubnetId"]]
        ),
    ),
    "EFA with public addresses": (
        efa_in_public,
        lambda app: queue(app)["Networking"].update(AssignPublicIp=True),
    ),
    "a private subnet with a way in": (efa_in_public, route_to_the_internet),
    "ParallelCluster's group on the head node": (
        open_to_ssh,
        lambda app: app.config["HeadNode"]["Networking"].pop("SecurityGroups"),
    ),
    "ParallelCluster's group on login nodes": (
        open_to_ssh,
        lambda app: app.config["LoginNodes"]["Pools"][0]["Networking"].pop("SecurityGroups"),
    ),
    "a group beside ours": (
        open_to_ssh,
        lambda app: app.config["HeadNode"]["Networking"].update(AdditionalSecurityGroups=["sg-1"]),
    ),
    "allowed addresses": (
        open_to_ssh,
        lambda app: app.config["HeadNode"]["Ssh"].update(AllowedIps="10.0.0.0/8"),
    ),
    "port 22 for one address": (
        open_to_ssh,
        lambda app: add_rule(app, FromPort=22, ToPort=22, CidrIp="192.0.2.1/32"),
    ),
    "all ports for another group": (
        open_to_ssh,
        lambda app: add_rule(app, IpProtocol="-1", SourceSecurityGroupId="sg-1"),
    ),
    "the first metadata service": (imds_v1, lambda app: app.config.update(Imds={"ImdsSupport": "v1.0"})),
    "a policy that reads every parameter": (
        parameters_of_others,
        lambda app: allow(app, Action=["ssm:GetParameter*"]),
    ),
    "a policy of AWS's on a queue": (
        parameters_of_others,
        lambda app: queue(app)["Iam"]["AdditionalIamPolicies"].append(
            {"Policy": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}
        ),
    ),
    "the first metadata service where images are built": (
        imds_v1,
        lambda app: first(app, "AWS::ImageBuilder::InfrastructureConfiguration").pop(
            "InstanceMetadataOptions"
        ),
    ),
    "a plain image": (
        unencrypted,
        lambda app: first(app, "AWS::ImageBuilder::ImageRecipe")["BlockDeviceMappings"][0]["Ebs"].update(
            Encrypted=False
        ),
    ),
    "metadata for every user": (imds_v1, lambda app: app.config["HeadNode"].pop("Imds")),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_proof_sees_what_breaks_it(app: Callable[..., App], what: str) -> None:
    proof, break_it = BROKEN[what]
    broken = app(**APPS["everything"])
    assert proof(broken) == []
    break_it(broken)
    assert proof(broken) != []


def test_every_proof_is_shown_to_see_something() -> None:
    assert {proof for proof, _ in BROKEN.values()} == set(PROOFS)


def test_ssh_is_open_for_ssh_from_alone(app: Callable[..., App]) -> None:
    inside = app(ssh_from="10.1.0.0/16", login_nodes="1")
    assert len(open_to_ssh(inside)) == 2, "one rule, on head and login nodes"
    assert open_to_ssh(inside, ssh_from="10.1.0.0/16") == []
    assert open_to_the_world(inside) == []


def test_only_ssh_from_anywhere_opens_a_port_to_the_world_and_only_22(app: Callable[..., App]) -> None:
    anywhere = app(**OTHERS["everything"])
    assert OTHERS["everything"]["ssh_from_anywhere"] == "yes"
    assert len(open_to_the_world(anywhere)) == 1
    assert open_to_ssh(anywhere, ssh_from="0.0.0.0/0") == []


@pytest.mark.parametrize("family", family_names())
def test_a_queue_with_efa_has_the_private_subnet_in_every_family(family: str) -> None:
    ids = placeholders(image_id=None, bootstrap_budget_s=0)
    config = render_cluster_config(settings=read_settings({"family": family}), ids=ids)
    for each in config["Scheduling"]["SlurmQueues"]:
        assert each["Networking"]["SubnetIds"] == [ids.private_subnet_id]
        assert "AssignPublicIp" not in each["Networking"]
