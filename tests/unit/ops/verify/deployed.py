"""A cluster in the local AWS for the tests of `trainctl verify`; its head node and CloudTrail are made up."""

import datetime
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ops.verify.check import Result
from ops.verify.checks import run_checks
from ops.verify.scene import Scene, open_scene
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import slurm_answer
from tests.unit.ops.own_account import BUCKET, OwnAccount
from training_cluster.cluster.config import JOB_SETTINGS
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG
from training_cluster.stack_names import ACCOUNTING_STACK, IMAGE_STACKS, NETWORK_STACK, STORAGE_STACK
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER

AT = datetime.datetime(2026, 11, 5, tzinfo=datetime.UTC)
ACCOUNT = "123456789012"
DENIED = Refused("AccessDenied", f"{ACCOUNT} may not")
COMMAND = "00000000-0000-0000-0000-000000000000"
SLURM = {
    "JobRequeue": "1",
    "PrologFlags": "Alloc,DeferBatch",
    "KillWait": "600 sec",
    "ProctrackType": "proctrack/cgroup",
    "EnforcePartLimits": "ALL",
    "SchedulerParameters": f"a=1,{JOB_SETTINGS['SchedulerParameters']}",
    "Prolog[0]": "/opt/slurm/etc/scripts/prolog.d/*",
    "Epilog[0]": "/opt/slurm/etc/scripts/epilog.d/*",
    "SuspendTime": "1200 sec",
}
FACTS = {
    "mount-lustre": "lustre",
    "mount-efs": "nfs4",
    "script": "root -rwxr-xr-x",
    "bootstrap": "30 lines, 0 failed steps",
    "cfn-init-begin": "2026-11-05 01:00:00",
    "cfn-init-end": "2026-11-05 01:09:00",
    "cfn-init-errors": "0",
    "pyxis": "yes",
    "pyxis-enabled": "yes",
    "topology": "auto, 3 leaves written, 3 read",
    "enroot": "yes",
}
IMAGE_STACK = f"{IMAGE_STACKS}gpu-ubuntu2404-{PCLUSTER_VERSION.replace('.', '-')}"
STAMPS = (IMAGE_TAG, CONTENT_TAG)
NAMESPACES = ("AWS/EC2", "AWS/FSx", "CWAgent", "ParallelCluster", "TrainingCluster")
DASHBOARD = {
    "widgets": [{"properties": {"metrics": [[{"expression": "a / b"}]] + [[n, "M"] for n in NAMESPACES]}}]
}


@dataclass(frozen=True)
class Made:
    """Resources that a deploy has made in the account."""

    head_node: str
    resources: dict[str, dict[str, list[str]]]
    """Ids by stack and type."""


def deploy() -> Made:
    """Have a cluster's stacks, head node, image, second link, layer, alarm, dashboard and metrics."""
    own = OwnAccount()
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 50, "Encrypted": True}}
    own.run(
        "m6i.4xlarge",
        MetadataOptions={"HttpTokens": "required"},
        BlockDeviceMappings=[disk],
        SubnetId=own.network.public,
        SecurityGroupIds=[own.nodes],
    )
    (run,) = own.ec2.describe_instances()["Reservations"]
    head_node = run["Instances"][0]["InstanceId"]
    image = own.ec2.create_image(InstanceId=head_node, Name="built")["ImageId"]
    own.ec2.create_tags(Resources=[image], Tags=[{"Key": each, "Value": "x"} for each in STAMPS])
    datasets = own.client("fsx").create_data_repository_association(
        FileSystemId=own.lustre,
        FileSystemPath="/datasets",
        DataRepositoryPath=f"s3://{BUCKET}/datasets/",
        S3={"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}},
    )
    cloudwatch = own.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        **{"AlarmName": f"TrainingCluster_{CLUSTER}_HeadNodeDead", "Namespace": "AWS/EC2", "MetricName": "M"},
        **{"Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1, "Threshold": 1},
        ComparisonOperator="GreaterThanThreshold",
    )
    cloudwatch.put_dashboard(DashboardName="Board", DashboardBody=json.dumps(DASHBOARD))
    for namespace in NAMESPACES:
        cloudwatch.put_metric_data(Namespace=namespace, MetricData=[{"MetricName": "M", "Value": 1}])
    for name in (NETWORK_STACK, STORAGE_STACK, ACCOUNTING_STACK, CLUSTER):
        own.deploy(name)
    own.deploy(IMAGE_STACK, ImageId=image)
    own.deploy("TrainingClusterStack", HeadNodeInstanceId=head_node, Dashboard="Board")
    storage = {
        "AWS::FSx::DataRepositoryAssociation": [datasets["Association"]["AssociationId"], own.link],
        "AWS::FSx::FileSystem": [own.lustre],
    }
    functions = {
        "AWS::Lambda::LayerVersion": ["arn:aws:lambda:us-east-1:123456789012:layer:l:1"],
        "AWS::Lambda::Function": ["TrainingClusterStack-Provider"],
    }
    return Made(head_node, {STORAGE_STACK: storage, "TrainingClusterStack": functions})


class Deployed:
    """The deployed cluster, of which a test changes one thing.

    Args:
        minutes: time of the creation of each stack.
        reason: of each event of the stacks.
        slurm: changes of Slurm's settings; None removes one.
        facts: changes of the facts about the head node.
        nodes: name and state of each.
        copies: directions in which the links copy, of `in` and `out`.
        amended: an operation, and the change of its answers.
        answers: AWS's answers, by operation.
    """

    def __init__(
        self,
        made: Made,
        *,
        minutes: float = 7,
        reason: str = "",
        slurm: dict[str, str | None] | None = None,
        facts: dict[str, str] | None = None,
        nodes: str = "gpu-dy-a-1|idle~\ngpu-st-a-1|idle\n",
        copies: tuple[str, ...] = ("in", "out"),
        amended: tuple[str, Callable[[dict[str, Any]], Any]] | None = None,
        **answers: Any,
    ) -> None:
        self.slurm, self.facts, self.nodes = {**SLURM, **(slurm or {})}, {**FACTS, **(facts or {})}, nodes
        self.copies, self.minutes, self.reason, self.head_node = copies, minutes, reason, made.head_node
        self.lustre: dict[str, str] = {}
        self.said: list[str] = []
        self._output = ""
        made_up = {
            "SendCommand": self._send,
            "GetCommandInvocation": lambda _: {"Status": "Success", "StandardOutputContent": self._output},
            "CancelCommand": {},
            "ListStackResources": lambda asked: {
                "StackResourceSummaries": [
                    summary(type_, id_)
                    for type_, ids in made.resources.get(asked["StackName"], {}).items()
                    for id_ in ids
                ]
            },
            "GetLayerVersionByArn": layer(),
            "LookupEvents": {"Events": [call("CreateStack")]},
        }
        self.account = Account({**made_up, **answers}, real=True)
        self.account.amended["DescribeStacks"] = _tag
        available = every("Associations", Lifecycle="AVAILABLE")  # in time
        self.account.amended["DescribeDataRepositoryAssociations"] = available
        self.account.amended["DescribeStackEvents"] = self._take_time
        for answered in answers:
            self.account.amended.pop(answered, None)
        if amended:
            self.account.amended[amended[0]] = amended[1]
        self.scene: Scene = open_scene(CLUSTER, self.account.client, self.said.append)

    def _take_time(self, said: dict[str, Any]) -> None:
        for each in said["StackEvents"]:
            is_begun = each["ResourceStatus"].endswith("IN_PROGRESS")
            each["Timestamp"] = AT + datetime.timedelta(minutes=0 if is_begun else self.minutes)
            each["ResourceStatusReason"] = self.reason
            if each["ResourceType"] != "AWS::CloudFormation::Stack":
                each["ResourceType"] = "AWS::CloudFormation::WaitCondition"
                each["LogicalResourceId"] = "HeadNodeWaitCondition20261105"

    def of_fsx(self, operation: str, **more: Any) -> Any:
        """Call S3 with the rights of FSx."""
        return getattr(Account(real=True).client("s3"), operation)(Bucket=BUCKET, **more)

    @property
    def bucket(self) -> list[str]:
        """Keys of all versions in the folders of the links, and of delete markers."""
        found = self.of_fsx("list_object_versions")
        listed = (*found.get("Versions", []), *found.get("DeleteMarkers", []))
        return [each["Key"] for each in listed if "/" in each["Key"]]

    def _send(self, asked: dict[str, Any]) -> dict[str, Any]:
        (script,) = asked["Parameters"]["commands"]
        words = shlex.split(script)
        if "config" in words:
            self._output = "".join(f"{key} = {value}\n" for key, value in self.slurm.items() if value)
        elif "sinfo" in words:
            lines = (line.split("|") for line in self.nodes.splitlines())
            said = "".join(f"gpu*|up|{word}|1|{name}|Unknown|none\n" for name, word in lines)
            self._output = slurm_answer("sinfo", said)
        elif "inspect-head-node.sh" in words:
            self._output = "".join(f"{key} {value}\n" for key, value in self.facts.items())
        else:
            self._output = self._probe(*words[words.index("probe-link.sh") + 1 :])
        return {"Command": {"CommandId": COMMAND}}

    def _probe(self, action: str, path: str, text: str = "") -> str:
        key = path.removeprefix("/fsx/")
        if action == "write":
            self.lustre[path] = text
            if "out" in self.copies:
                self.of_fsx("put_object", Key=key, Body=text.encode())
        elif action == "remove":
            self.lustre.pop(path, None)
        elif "in" in self.copies and key in self.bucket:
            self.lustre[path] = self.of_fsx("get_object", Key=key)["Body"].read().decode()
        return self.lustre.get(path, "") if action == "print" else ""

    def results(self) -> dict[str, Result]:
        """Run every check, and look that the results identify no account."""
        found = run_checks(self.scene)
        for secret in (ACCOUNT, self.head_node, BUCKET, "arn:"):
            assert secret not in str(found)
        return {each.id: each for each in found}


def _tag(said: dict[str, Any]) -> None:
    for each in said["Stacks"]:
        each["Tags"] = [{"Key": "parallelcluster:version", "Value": PCLUSTER_VERSION}]
        for output in each["Outputs"]:
            output.pop("Description", None)  # the local AWS has empty ones, which AWS does not know


def ssh(cidr: str) -> dict[str, Any]:
    """Return a rule that opens SSH."""
    return {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": cidr}]}


def summary(type_: str, id_: str) -> dict[str, Any]:
    """Return a resource of a stack."""
    state = {"ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": AT, "LogicalResourceId": "A"}
    return {"PhysicalResourceId": id_, "ResourceType": type_, **state}


def layer(version: str = PCLUSTER_VERSION, size: int = 60 * 2**20) -> dict[str, Any]:
    """Return the provider's layer."""
    return {
        "Description": f"aws-parallelcluster {version}, as AWS publishes it",
        "Content": {"CodeSize": size},
        "CompatibleRuntimes": ["python3.12"],
    }


def every(key: str, **members: Any) -> Callable[[dict[str, Any]], Any]:
    """Return a change that gives each thing in a list of an answer other members."""
    return lambda said: [each.update(members) for each in said[key]]


def call(name: str, code: str = "") -> dict[str, Any]:
    """Return a call as CloudTrail records it."""
    detail = {"eventSource": "cloudformation.amazonaws.com", "eventName": name}
    return {"CloudTrailEvent": json.dumps(detail | ({"errorCode": code} if code else {}))}
