"""A deployed cluster in memory, for the tests of `trainctl verify`."""

import datetime
import io
import json
import shlex
from typing import Any

from botocore.response import StreamingBody

from ops.verify.check import Result
from ops.verify.checks import run_checks
from ops.verify.scene import Scene, open_scene
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import slurm_answer
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG
from training_cluster.stack_names import STORAGE_STACK

AT = datetime.datetime(2026, 11, 5, tzinfo=datetime.UTC)
ACCOUNT = "111122223333"
DENIED = Refused("AccessDenied", f"{ACCOUNT} may not")
HEAD_NODE = "i-0aaaaaaaaaaaaaaaa"
COMMAND = "00000000-0000-0000-0000-000000000000"
SLURM = {
    "JobRequeue": "1",
    "PrologFlags": "Alloc,DeferBatch",
    "KillWait": "600 sec",
    "EnforcePartLimits": "ALL",
    "SchedulerParameters": "a=1,nohold_on_prolog_fail",
    "Prolog[0]": "/opt/slurm/etc/scripts/prolog.d/*",
    "Epilog[0]": "/opt/slurm/etc/scripts/epilog.d/*",
    "SuspendTime": "600 sec",
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
    "enroot": "yes",
}
IMAGE_STACK = f"TrainingCluster-Image-gpu-ubuntu2404-{PCLUSTER_VERSION.replace('.', '-')}"
NAMESPACES = ("AWS/EC2", "AWS/FSx", "CWAgent", "ParallelCluster", "TrainingCluster")
DASHBOARD = {
    "widgets": [{"properties": {"metrics": [[{"expression": "a / b"}]] + [[n, "M"] for n in NAMESPACES]}}]
}
RESOURCES = {
    STORAGE_STACK: {
        "AWS::FSx::DataRepositoryAssociation": ["dra-0aaaaaaaaaaaaaaaa", "dra-0aaaaaaaaaaaaaaab"],
        "AWS::FSx::FileSystem": ["fs-0aaaaaaaaaaaaaaaa"],
    },
    "TrainingClusterStack": {
        "AWS::Lambda::LayerVersion": ["arn:aws:lambda:us-east-1:111122223333:layer:l:1"],
        "AWS::Lambda::Function": ["TrainingClusterStack-Provider"],
    },
}


class Deployed:
    """A deployed cluster, of which a test changes one thing.

    Args:
        minutes: time of the creation of each stack.
        slurm: changes of Slurm's settings; None removes one.
        facts: changes of the facts about the head node.
        nodes: name and state of each.
        copies: directions in which the links copy, of `in` and `out`.
        resources: changes of the stacks' resources.
        answers: changes of AWS's answers, by operation.
    """

    def __init__(
        self,
        *,
        minutes: float = 7,
        slurm: dict[str, str | None] | None = None,
        facts: dict[str, str] | None = None,
        nodes: str = "gpu-dy-a-1|idle~\ngpu-st-a-1|idle\n",
        copies: tuple[str, ...] = ("in", "out"),
        resources: dict[str, Any] | None = None,
        **answers: Any,
    ) -> None:
        self.slurm, self.facts, self.nodes = {**SLURM, **(slurm or {})}, {**FACTS, **(facts or {})}, nodes
        self.copies = copies
        self.resources = {**RESOURCES, **(resources or {})}
        self.bucket: dict[str, bytes] = {}
        self.lustre: dict[str, str] = {}
        self.said: list[str] = []
        self._output = ""
        self.account = Account({**self._of_stacks(minutes), **self._of_services(), **answers})
        self.scene: Scene = open_scene("training", self.account.client, self.said.append)

    def _of_stacks(self, minutes: float) -> dict[str, Any]:
        return {
            "DescribeStacks": lambda asked: {"Stacks": stacks(asked.get("StackName"))},
            "DescribeStackEvents": {"StackEvents": events(minutes)},
            "ListStackResources": lambda asked: {
                "StackResourceSummaries": [
                    summary(type_, id_)
                    for type_, ids in self.resources.get(asked["StackName"], {}).items()
                    for id_ in ids
                ]
            },
        }

    def _of_services(self) -> dict[str, Any]:
        tags = [{"Key": key, "Value": "x"} for key in (IMAGE_TAG, CONTENT_TAG)]
        return {
            "SendCommand": self._send,
            "GetCommandInvocation": lambda _: {"Status": "Success", "StandardOutputContent": self._output},
            "CancelCommand": {},
            "DescribeInstances": {"Reservations": [{"Instances": [instance()]}]},
            "DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": "sg-1", "IpPermissions": [rule()]}]},
            "DescribeVolumes": {"Volumes": [{"Encrypted": True}]},
            "DescribeImages": {"Images": [{"State": "available", "Tags": tags}]},
            "DescribeDataRepositoryAssociations": {"Associations": [link("In"), link("Out")]},
            "DescribeFileSystems": {"FileSystems": [file_system()]},
            "DescribeAlarms": {"MetricAlarms": [alarm("OK")]},
            "GetDashboard": {"DashboardBody": json.dumps(DASHBOARD)},
            "ListMetrics": {"Metrics": [{"MetricName": "M"}]},
            "GetLayerVersionByArn": layer(),
            "LookupEvents": {"Events": [call("CreateStack")]},
            "PutObject": self._put,
            "GetObject": self._get,
            "ListObjectVersions": lambda asked: {
                "Versions": [
                    {"Key": key, "VersionId": "1"} for key in self.bucket if key.startswith(asked["Prefix"])
                ]
            },
            "DeleteObject": self._delete,
        }

    def _put(self, asked: dict[str, Any]) -> dict[str, Any]:
        text: bytes = asked["Body"].read()
        self.bucket[asked["Key"]] = text
        if "in" in self.copies:
            self.lustre[f"/fsx/{asked['Key']}"] = text.decode()
        return {}

    def _get(self, asked: dict[str, Any]) -> Any:
        if asked["Key"] not in self.bucket:
            return Refused("NoSuchKey")
        text = self.bucket[asked["Key"]]
        return {"Body": StreamingBody(io.BytesIO(text), len(text))}

    def _delete(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["VersionId"] == "1", "a delete marker would remain in the versioned bucket"
        del self.bucket[asked["Key"]]
        return {}

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
        if action == "write":
            self.lustre[path] = text
            if "out" in self.copies:
                self.bucket[path.removeprefix("/fsx/")] = text.encode()
        elif action == "remove":
            self.lustre.pop(path, None)
        return self.lustre.get(path, "") if action == "print" else ""

    def results(self) -> dict[str, Result]:
        """Run every check, and look that the results identify no account."""
        found = run_checks(self.scene)
        for secret in (ACCOUNT, HEAD_NODE, "the-bucket", "arn:"):
            assert secret not in str(found)
        return {each.id: each for each in found}


def stacks(name: str | None) -> list[dict[str, Any]]:
    common = {"StackStatus": "CREATE_COMPLETE", "CreationTime": AT}
    own = {"HeadNodeInstanceId": HEAD_NODE, "Dashboard": "TrainingCluster_training_us-east-1"}
    outputs: dict[str, dict[str, str]] = {
        "TrainingClusterStack": own,
        "training": {},
        IMAGE_STACK: {"ImageId": "ami-0aaaaaaaaaaaaaaaa"},
    }
    tags = {"training": [{"Key": "parallelcluster:version", "Value": PCLUSTER_VERSION}]}
    return [
        {
            **common,
            "StackName": each,
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs[each].items()],
            "Tags": tags.get(each, []),
        }
        for each in outputs
        if name in (None, each)
    ]


def events(minutes: float, **more: Any) -> list[dict[str, Any]]:
    times = {"CREATE_IN_PROGRESS": AT, "CREATE_COMPLETE": AT + datetime.timedelta(minutes=minutes)}
    common = {"StackId": "arn", "StackName": "training", "EventId": "1"}
    of_stack = {"PhysicalResourceId": "arn", "ResourceType": "AWS::CloudFormation::Stack"}
    of_wait = {
        "PhysicalResourceId": "w",
        "ResourceType": "AWS::CloudFormation::WaitCondition",
        "LogicalResourceId": "HeadNodeWaitCondition20261105",
    }
    return [
        common | each | {"ResourceStatus": key, "Timestamp": at, **more}
        for each in (of_stack, of_wait)
        for key, at in times.items()
    ]


def summary(type_: str, id_: str) -> dict[str, Any]:
    state = {"ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": AT}
    return {"PhysicalResourceId": id_, "LogicalResourceId": "A", "ResourceType": type_, **state}


def instance(**more: Any) -> dict[str, Any]:
    return {
        "InstanceId": HEAD_NODE,
        "InstanceType": "m6i.4xlarge",
        "LaunchTime": AT,
        "MetadataOptions": {"HttpTokens": "required"},
        "SecurityGroups": [{"GroupId": "sg-1"}],
        **more,
    }


def rule(cidr: str = "203.0.113.0/24") -> dict[str, Any]:
    return {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": cidr}]}


def link(direction: str, state: str = "AVAILABLE") -> dict[str, Any]:
    folder, policy = (
        ("datasets", "AutoImportPolicy") if direction == "In" else ("checkpoints", "AutoExportPolicy")
    )
    return {
        "Lifecycle": state,
        "FileSystemPath": f"/{folder}",
        "DataRepositoryPath": f"s3://the-bucket/{folder}/",
        "S3": {policy: {"Events": ["NEW", "CHANGED"]}},
    }


def file_system() -> dict[str, Any]:
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    return {"StorageCapacity": 1200, "LustreConfiguration": lustre}


def layer(version: str = PCLUSTER_VERSION, size: int = 60 * 2**20) -> dict[str, Any]:
    return {
        "Description": f"aws-parallelcluster {version}, as AWS publishes it",
        "Content": {"CodeSize": size},
        "CompatibleRuntimes": ["python3.12"],
    }


def call(name: str, code: str = "") -> dict[str, Any]:
    detail = {"eventSource": "cloudformation.amazonaws.com", "eventName": name}
    return {"CloudTrailEvent": json.dumps(detail | ({"errorCode": code} if code else {}))}


def alarm(state: str) -> dict[str, str]:
    return {"AlarmName": "TrainingCluster_training_HeadNodeDead", "StateValue": state}
