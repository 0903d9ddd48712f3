"""Existing resources for a cluster, made by plain API calls: network, storage, access, a reservation.

They have our tag, as what our deleted stacks retained: `show_stacks` makes them ours.
"""

import json
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ops.account.stacks import DESCRIPTION, stack_status
from rehearsal.local_aws.emulators.moto_types import ec2
from tests.in_process import aws
from tests.slow.account import make_network
from tests.unit.ops.fake_account import READS, Account, FakeStack, Refused, stack_answers
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.stack_names import DEFAULT_CLUSTER, new_key_pair

TYPE, ZONE = "p4d.24xlarge", "us-east-1a"
WORLD = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
BUCKET, ABROAD, KEY, RSA, GROUP = "own-data", "own-data-abroad", "own-key", "own-rsa-key", "own-group"
CALLER = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/someone", "UserId": "someone"}
OURS = [{"Key": CLUSTER_TAG, "Value": SHARED}]
Resources = Mapping[str, tuple[str, str, str | None]]
"""Type, physical id and deletion policy by logical id."""
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
_POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}

_NOTE = MappingProxyType(
    {"Note": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "-"}}}
)


def tcp(first: int, last: int, group: str) -> dict[str, Any]:
    """Return a rule that allows a group's traffic."""
    pairs = [{"GroupId": group}]
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "UserIdGroupPairs": pairs}


class OwnAccount:
    """An account with exactly the resources that a deploy with `flags` needs."""

    def __init__(self) -> None:
        aws().empty()
        self.account = Account(real=True)
        self.client = self.account.client
        self._undo: list[Callable[[], Any]] = []
        self.client("ssm").put_parameter(Name=BOOTSTRAP, Value="21", Type="String")
        self.network = make_network(self.client("ec2"))
        self.nodes = self.network.nodes
        self.itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.nodes}]}
        self.public_table, self.private_table = map(self._table, (self.network.public, self.network.private))
        self.internet, self.nat = self._gateways()
        self.ec2.modify_subnet_attribute(SubnetId=self.network.public, MapPublicIpOnLaunch={"Value": True})
        self.make_s3_endpoint()
        self._make_bucket()
        self.lustre_group = self._group(
            "TrainingCluster-Storage-StorageLustre", tcp(988, 988, self.nodes), tcp(1018, 1023, self.nodes)
        )
        self._open(self.lustre_group, tcp(988, 988, self.lustre_group))  # between Lustre's own servers
        self.nfs_group = self._group("nfs", tcp(2049, 2049, self.nodes))
        self.lustre = self._make_lustre()
        self.make_link()
        self.efs = self.client("efs").create_file_system(Encrypted=True)["FileSystemId"]
        self.make_mount_target()
        self._tag()
        self.make_key(KEY, "ed25519")
        self.make_key(RSA, "rsa")
        self.make_placement_group("cluster")
        iam = self.client("iam")
        boundary = iam.create_policy(PolicyName="bound", PolicyDocument=json.dumps(_POLICY))
        service = "/aws-service-role/spot.amazonaws.com/"
        iam.create_role(RoleName="AWSServiceRoleForEC2Spot", Path=service, AssumeRolePolicyDocument="{}")
        secret = self.client("secretsmanager").create_secret(Name="slurm", SecretString="-")
        self.reservation = self.reserve()
        self.flags = {
            "family": "p4d",
            "vpc_id": self.network.vpc,
            "public_subnet_id": self.network.public,
            "private_subnet_id": self.network.private,
            "security_group_id": self.nodes,
            "bucket_name": BUCKET,
            "fsx_id": self.lustre,
            "efs_id": self.efs,
            "home": "efs",
            "key_name": KEY,
            "placement_group": GROUP,
            "permissions_boundary": boundary["Policy"]["Arn"],
            "accounting": "db.example.com",
            "accounting_secret": secret["ARN"],
            "capacity": f"reservation:{self.reservation}",
        }
        self.reset()
        self._memory: dict[tuple[str, ...], bytes] = {}
        self.account.memory = self._memory

    @property
    def ec2(self) -> Any:
        """A client of EC2, which this account answers whoever asked another account last."""
        return self.client("ec2")

    @property
    def exists(self) -> bool:
        """True unless another test emptied the account, or moto."""
        return self.network.vpc in ec2().vpcs

    def later(self, undo: Callable[..., Any], **arguments: Any) -> None:
        """Undo a change at the next reset."""
        self._undo.append(lambda: undo(**arguments))

    def reset(self) -> None:
        """Undo what was changed, and answer truly again."""
        while self._undo:
            self._undo.pop()()
            self.account.memory = self._memory
        self.account.answers, self.account.amended = {"GetCallerIdentity": dict(CALLER)}, {}
        self.account.asked.clear()

    def _table(self, subnet: str) -> str:
        filters = [{"Name": "association.subnet-id", "Values": [subnet]}]
        (found,) = self.ec2.describe_route_tables(Filters=filters)["RouteTables"]
        return str(found["RouteTableId"])

    def _gateways(self) -> tuple[str, str]:
        filters = [{"Name": "attachment.vpc-id", "Values": [self.network.vpc]}]
        (internet,) = self.ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]
        (nat,) = self.ec2.describe_nat_gateways()["NatGateways"]
        return internet["InternetGatewayId"], nat["NatGatewayId"]

    def _group(self, name: str, *rules: dict[str, Any]) -> str:
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.network.vpc)
        group = str(made["GroupId"])
        self.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=[WORLD])
        self._open(group, *rules)
        return group

    def _open(self, group: str, *rules: dict[str, Any]) -> None:
        for authorize in (
            self.ec2.authorize_security_group_ingress,
            self.ec2.authorize_security_group_egress,
        ):
            authorize(GroupId=group, IpPermissions=list(rules))

    def _tag(self) -> None:
        fsx = self.client("fsx")
        (lustre,) = fsx.describe_file_systems()["FileSystems"]
        fsx.tag_resource(ResourceARN=lustre["ResourceARN"], Tags=OURS)
        self.client("efs").tag_resource(ResourceId=self.efs, Tags=OURS)
        self.client("s3").put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": OURS})
        self.ec2.create_tags(Resources=[self.lustre_group], Tags=OURS)

    @property
    def stacks(self) -> dict[str, Resources]:
        """Resources of our stacks, where everything is deployed, by stack."""
        retain = "RetainExceptOnCreate"
        return {
            "TrainingCluster-Network": {
                "NetworkVpc7F": ("AWS::EC2::VPC", self.network.vpc, None),
                "NetworkVpcPublicSubnet1NATGateway64": ("AWS::EC2::NatGateway", self.nat, None),
            },
            "TrainingCluster-Storage": {
                "StorageBucket5C": ("AWS::S3::Bucket", BUCKET, retain),
                "StorageLustreD5": ("AWS::FSx::FileSystem", self.lustre, retain),
                "StorageLustreSecurityGroupC4": ("AWS::EC2::SecurityGroup", self.lustre_group, "Retain"),
                "StorageEfs3F": ("AWS::EFS::FileSystem", self.efs, retain),
                "StorageEfsMountTarget": ("AWS::EFS::MountTarget", self.mount_target, None),
            },
            "TrainingClusterStack": {"KeyPair16": ("AWS::EC2::KeyPair", new_key_pair(DEFAULT_CLUSTER), None)},
            DEFAULT_CLUSTER: {},
        }

    def show_stacks(
        self,
        stacks: Mapping[str, Resources] | None = None,
        *,
        status: str = "CREATE_COMPLETE",
        foreign: tuple[str, ...] = (),
    ) -> None:
        """Show these stacks, or all; the templates of foreign ones are not ours."""
        protected = {"TrainingCluster-Storage", "TrainingCluster-Accounting"}
        shown = {}
        for name, resources in (self.stacks if stacks is None else stacks).items():
            kept = {
                id_: {"Type": type_} | ({"DeletionPolicy": policy} if policy else {})
                for id_, (type_, _, policy) in resources.items()
            }
            ours = {"Description": f"{DESCRIPTION} it", "Resources": kept}
            shown[name] = FakeStack(
                template="Description: their network\nResources: {}\n" if name in foreign else ours,
                resources={id_: (type_, physical) for id_, (type_, physical, _) in resources.items()},
                members={"StackStatus": status, "EnableTerminationProtection": name in protected},
            )
        self.account.answers |= stack_answers(shown)

    def _make_bucket(self) -> None:
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.create_bucket(Bucket=ABROAD, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})

    def _make_lustre(self) -> str:
        made = self.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            FileSystemTypeVersion="2.15",
            StorageCapacity=1200,
            SubnetIds=[self.network.private],
            SecurityGroupIds=[self.lustre_group],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )
        return str(made["FileSystem"]["FileSystemId"])

    def _switch_off(self, modify: Callable[..., Any], attribute: str, **which: str) -> None:
        modify(**which, **{attribute: {"Value": False}})
        self.later(modify, **which, **{attribute: {"Value": True}})

    def give_no_public_addresses(self) -> None:
        """Stop the public subnet from giving its instances public addresses."""
        self._switch_off(
            self.ec2.modify_subnet_attribute, "MapPublicIpOnLaunch", SubnetId=self.network.public
        )

    def without_dns(self, attribute: str) -> None:
        """Switch EnableDnsSupport or EnableDnsHostnames of the VPC off."""
        self._switch_off(self.ec2.modify_vpc_attribute, attribute, VpcId=self.network.vpc)

    def reroute(self, table: str, **gateway: str) -> None:
        """Replace the route to the internet; without a gateway, remove it."""
        route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
        (self.ec2.replace_route if gateway else self.ec2.delete_route)(**route, **gateway)
        is_public = table == self.public_table
        before = {"GatewayId": self.internet} if is_public else {"NatGatewayId": self.nat}
        self.later(self.ec2.replace_route if gateway else self.ec2.create_route, **route, **before)

    def close(self, group: str, direction: str, *rules: dict[str, Any]) -> None:
        """Remove rules of a security group."""
        which = {"GroupId": group, "IpPermissions": list(rules)}
        getattr(self.ec2, f"revoke_security_group_{direction}")(**which)
        self.later(getattr(self.ec2, f"authorize_security_group_{direction}"), **which)

    def run(self, type_: str = TYPE, count: int = 1, **more: Any) -> None:
        """Start instances."""
        image = self.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        placement = {"AvailabilityZone": ZONE}
        run = self.ec2.run_instances(
            ImageId=image, InstanceType=type_, MinCount=count, MaxCount=count, Placement=placement, **more
        )
        self.later(self.ec2.terminate_instances, InstanceIds=[e["InstanceId"] for e in run["Instances"]])

    def deploy(
        self,
        name: str,
        *,
        description: str = "Training Cluster: it",
        resources: Mapping[str, Any] = _NOTE,
        **outputs: str,
    ) -> None:
        """Create a stack with these outputs."""
        template = {
            "Description": description,
            "Resources": dict(resources),
            "Outputs": {key: {"Value": value} for key, value in outputs.items()},
        }
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
        self.later(self._destroy, name=name)
        while self._status(name) == "CREATE_IN_PROGRESS":
            time.sleep(0.001)
        assert self._status(name) == "CREATE_COMPLETE", cloudformation.describe_stack_events(StackName=name)

    def deploy_network(self) -> None:
        """Create a NetworkStack with this network."""
        self.deploy(
            "TrainingCluster-Network",
            VpcId=self.network.vpc,
            PublicSubnetId=self.network.public,
            PrivateSubnetId=self.network.private,
            NodeSecurityGroupId=self.nodes,
        )

    def deploy_storage(self) -> None:
        """Create a StorageStack with this storage."""
        self.deploy("TrainingCluster-Storage", BucketName=BUCKET, FileSystemId=self.lustre, EfsId=self.efs)

    def _status(self, name: str) -> str | None:
        return stack_status(name, self.client("cloudformation"))

    def _destroy(self, name: str) -> None:
        self.client("cloudformation").delete_stack(StackName=name)
        while self._status(name):
            time.sleep(0.001)

    def amend(self, operation: str, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the account's answers to an operation."""
        self.account.amended[operation] = change

    def amend_all(self, operation: str, key: str, **members: Any) -> None:
        """Give each thing in a list of an operation's answers other members."""
        self.amend(operation, lambda said: [each.update(members) for each in said[key]])

    def refuse(self, operation: str, code: str, message: str = "") -> None:
        """Refuse an operation as AWS does."""
        self.account.answers[operation] = Refused(code, message)

    def quota(self, code: str, value: float) -> None:
        """Lower a quota."""

        def lower(said: dict[str, Any]) -> None:
            if said["Quota"]["QuotaCode"] == code:
                said["Quota"]["Value"] = value

        self.amend("GetServiceQuota", lower)

    @property
    def is_untouched(self) -> bool:
        """True if nothing was changed since the last reset."""
        return all(each.startswith(READS) for each in self.account.asked)

    def make_s3_endpoint(self) -> None:
        """Make the gateway endpoint of the private subnet."""
        made = self.ec2.create_vpc_endpoint(
            VpcId=self.network.vpc,
            ServiceName="com.amazonaws.us-east-1.s3",
            VpcEndpointType="Gateway",
            RouteTableIds=[self.private_table],
        )
        self.s3_endpoints = [made["VpcEndpoint"]["VpcEndpointId"]]

    def make_link(self) -> None:
        """Make the data repository association of checkpoints with the bucket."""
        made = self.client("fsx").create_data_repository_association(
            FileSystemId=self.lustre,
            FileSystemPath="/checkpoints",
            DataRepositoryPath=f"s3://{BUCKET}/checkpoints/",
            S3={"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}},
        )
        self.link = made["Association"]["AssociationId"]

    def make_mount_target(self) -> None:
        """Make a mount target of EFS in the private subnet."""
        made = self.client("efs").create_mount_target(
            FileSystemId=self.efs, SubnetId=self.network.private, SecurityGroups=[self.nfs_group]
        )
        self.mount_target = made["MountTargetId"]

    def make_key(self, name: str, kind: str) -> None:
        """Make a key pair of this kind."""
        self.ec2.create_key_pair(KeyName=name, KeyType=kind)

    def make_placement_group(self, strategy: str) -> None:
        """Make a placement group of this name."""
        self.ec2.create_placement_group(GroupName=GROUP, Strategy=strategy)

    def reserve(self, type_: str = TYPE, *, count: int = 2, match: str = "targeted") -> str:
        """Make a reservation and return its id."""
        made = self.ec2.create_capacity_reservation(
            InstanceType=type_,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=ZONE,
            InstanceCount=count,
            InstanceMatchCriteria=match,
        )
        return str(made["CapacityReservation"]["CapacityReservationId"])
