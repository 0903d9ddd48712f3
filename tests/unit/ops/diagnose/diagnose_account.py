"""An account with a cluster that failed, for trainctl diagnose."""

import datetime
import io
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ops.account.stacks import DESCRIPTION
from ops.diagnose.account import gather
from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.render import Diagnosis
from ops.diagnose.stacks import SUCCESSES
from ops.diagnose.texts import Gathered
from tests.unit.ops.fake_account import Account, FakeStack, stack_answers
from tests.unit.ops.jobs_head_node import job_line, slurm_answer
from training_cluster.stack_names import CLUSTER_STACK, FORMER_DEFAULT

HEAD, GROUP = "i-0aaaaaaaaaaaaaaaa", "/aws/parallelcluster/training-202611051010"
AT = datetime.datetime(2026, 11, 5, 10, 10, tzinfo=datetime.UTC)
SUCCEEDED = AT + datetime.timedelta(hours=1)
STATUSES = {
    "TrainingCluster-Network": "CREATE_COMPLETE",
    "TrainingCluster-Storage": "CREATE_COMPLETE",
    "TrainingClusterStack": "ROLLBACK_COMPLETE",
    "training": "CREATE_FAILED",
    "SomebodyElses": "UPDATE_ROLLBACK_FAILED",
}
WELL = {name: "UPDATE_COMPLETE" for name in STATUSES if name != "SomebodyElses"}
Answers = dict[str, Any]


class Failed(str):
    """Output of a command that fails on the head node."""

    __slots__ = ()


def failing(
    *,
    reason: str = "WaitCondition timed out. Received 0 conditions when expecting 1",
    saved: Mapping[str, str] | None = None,
    logs: Mapping[str, str] | None = None,
    console: str = "",
    commands: Callable[[str], str] = lambda _script: slurm_answer("sinfo", ""),
    statuses: Mapping[str, str] | None = None,
) -> Answers:
    """Answers of such an account.

    Args:
        reason: of the event that failed in ParallelCluster's own stack.
        saved: what the provider saved, by key below logs/training/.
        logs: messages in CloudWatch, by the last part of the stream's name.
        commands: what the head node answers to a script.
        statuses: of the stacks; the operation of one that succeeded ended at SUCCEEDED.
    """
    stacks = dict(STATUSES if statuses is None else statuses)
    return {
        "GetCallerIdentity": {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/me"},
        **_stack_answers(stacks, reason),
        **_bucket_answers(saved or {}),
        **_instance_answers(console, commands, is_there="training" in stacks),
        **_log_answers(logs or {}),
    }


def _stack_answers(stacks: Mapping[str, str], reason: str) -> Answers:
    def stack_id(name: str) -> str:
        return f"arn:aws:cloudformation:us-east-1:111122223333:stack/{name}/1"

    def described(name: str) -> FakeStack:
        is_storage = name == "TrainingCluster-Storage"
        members: Answers = {"StackId": stack_id(name), "StackStatus": stacks[name], "CreationTime": AT}
        if name == CLUSTER_STACK:
            members["Description"] = f"{DESCRIPTION} the cluster {FORMER_DEFAULT}, family p5"
        return FakeStack(
            template={"Description": f"{DESCRIPTION} it"},
            outputs={"BucketName": "amzn-s3-demo-bucket"} if is_storage else {},
            members=members | {"EnableTerminationProtection": is_storage},
        )

    def events(asked: Answers) -> Answers:
        name = asked["StackName"]

        def event(
            id_: str, status: str, why: str = "", physical_id: str = "x", at: datetime.datetime = AT
        ) -> Answers:
            return {
                "StackId": stack_id(name),
                "EventId": id_ + status,
                "StackName": name,
                "LogicalResourceId": id_,
                "PhysicalResourceId": physical_id,
                "ResourceType": "AWS::CloudFormation::WaitCondition",
                "ResourceStatus": status,
                "ResourceStatusReason": why,
                "Timestamp": at,
            }

        if stacks[name] in SUCCESSES:
            filter_ = "OtherInstanceLaunchFailuresFilter"
            ended = [
                event(name, stacks[name], "", stack_id(name), SUCCEEDED),
                event(filter_, "CREATE_COMPLETE"),
                event(filter_, "CREATE_IN_PROGRESS"),
                event(name, "UPDATE_IN_PROGRESS", "", stack_id(name)),
            ]
            rolled_back = event("HeadNode", "UPDATE_FAILED", "VcpuLimitExceeded of an update before")
            return {"StackEvents": [*ended, rolled_back]}
        failed = [event("HeadNodeWaitCondition", "CREATE_FAILED", reason)] if name == "training" else []
        before = [event("Old", "UPDATE_FAILED", "VcpuLimitExceeded of an operation before")]
        # CDK creates a stack by a change set, whose own event is the stack's first.
        created = [
            event(name, status, "", stack_id(name)) for status in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")
        ]
        return {"StackEvents": [*failed, *created, *before]}

    return stack_answers({name: described(name) for name in stacks}) | {"DescribeStackEvents": events}


def _bucket_answers(saved: Mapping[str, str]) -> Answers:
    def listed(asked: Answers) -> Answers:
        keys = [f"logs/training/{key}" for key in saved if f"logs/training/{key}".startswith(asked["Prefix"])]
        if "Delimiter" in asked:
            folders = sorted({f"{key.rpartition('/')[0]}/" for key in keys})
            return {"CommonPrefixes": [{"Prefix": folder} for folder in folders]}
        sizes = {key: len(saved[key.removeprefix("logs/training/")]) for key in keys}
        return {"Contents": [{"Key": key, "Size": size} for key, size in sizes.items()]}

    def read(asked: Answers) -> Answers:
        return {"Body": io.BytesIO(saved[asked["Key"].removeprefix("logs/training/")].encode())}

    return {"ListObjectsV2": listed, "GetObject": read}


def _instance_answers(console: str, commands: Callable[[str], str], *, is_there: bool) -> Answers:
    scripts: list[str] = []

    def send(asked: Answers) -> Answers:
        scripts.append(asked["Parameters"]["commands"][0])
        return {"Command": {"CommandId": "00000000-0000-0000-0000-000000000000"}}

    def invocation(_asked: Answers) -> Answers:
        said = commands(scripts[-1])
        if isinstance(said, Failed):
            failed = {"StandardErrorContent": said, "StandardOutputContent": "", "ResponseCode": 1}
            return {"Status": "Failed", **failed}
        return {"Status": "Success", "StandardOutputContent": said}

    head = {"InstanceId": HEAD, "LaunchTime": AT}
    return {
        "DescribeInstances": {"Reservations": [{"Instances": [head]}] if is_there else []},
        "GetConsoleOutput": {"Output": console},
        "SendCommand": send,
        "GetCommandInvocation": invocation,
    }


def _log_answers(logs: Mapping[str, str]) -> Answers:
    def events(asked: Answers) -> Answers:
        said = logs[asked["logStreamName"].rpartition(".")[2]]
        return {"events": [{"timestamp": 1793873400000, "message": line} for line in said.splitlines()]}

    groups = [
        GROUP,
        "/aws/parallelcluster/training-202601010101",
        "/aws/parallelcluster/training-two-202612010101",
    ]
    return {
        "DescribeLogGroups": {"logGroups": [{"logGroupName": name} for name in groups] if logs else []},
        "DescribeLogStreams": lambda asked: {
            "logStreams": [
                {"logStreamName": f"ip-10-0-0-9.{HEAD}.{log}"}
                for log in logs
                if asked["logGroupName"] == GROUP
            ]
        },
        "GetLogEvents": events,
    }


def head_node(
    *,
    job: Mapping[str, Any] | None = None,
    tasks: Mapping[int, str] | None = None,
    log: str = "",
    path: str = "/fsx/runs/job-7.log",
    queue: str = "",
    accounts: str = "",
    nodes: str = "gpu*|up|idle|1|gpu-dy-1|Unknown|none",
) -> Callable[[str], str]:
    """Return the answers of a head node to scripts.

    Args:
        job: fields of job 7 (`job_line`); None if Slurm has forgotten it.
        tasks: of the array 7, with the state and the exit code of each.
        log: of job 7.
        path: of this log.
        queue: the jobs of squeue; one that has ended is listed only if its state is requested.
        accounts: the answer of sacct; empty without accounting.
        nodes: the answer of sinfo.
    """
    common: dict[str, Any] = {"name": "mine", "command": "mine", "output": path, "restarts": 0}
    jobs = {"7": job_line(**{"id_": "7", **common, **job})} if job else {}
    jobs |= {
        f"7_{task}": job_line(*said.split(), id_=f"7_{task}", **common)
        for task, said in (tasks or {}).items()
    }

    def answer(script: str) -> str:  # noqa: PLR0911 (one for each program)
        words = shlex.split(script)
        if "scontrol" in words:
            return f"JobId={words[-1]}\n"
        if words[-2:] == ["id", "-un"]:
            return "ann\n"
        if "ls" in words:  # the file in the folder of the user
            return Failed("")
        if "stat" in words:
            return (
                f"{len(log)}\n" if path in words else Failed("stat: cannot statx: No such file or directory")
            )
        if "dd" in words:
            skip, count = (
                int(word.partition("=")[2]) for word in words if word.startswith(("skip", "count"))
            )
            assert f"if={path}" in words
            return log[skip : skip + count]
        if "sacct" in words:
            return (
                slurm_answer("sacct", accounts)
                if accounts
                else Failed("Slurm accounting storage is disabled")
            )
        if "squeue" in words:
            if words[-1].startswith("--jobs="):
                wanted = words[-1].partition("=")[2]
                found = (each for id_, each in jobs.items() if wanted in (id_, id_.partition("_")[0]))
                return slurm_answer("squeue", "".join(found))
            asked = next((word for word in words if word.startswith("--states=")), "--states=PENDING,RUNNING")
            states = asked.partition("=")[2].split(",")
            lines = [line for line in queue.splitlines() if line.split("|")[3] in states]
            return slurm_answer("squeue", "".join(f"{line}\n" for line in lines))
        assert "sinfo" in words
        return "REASON NODELIST\n" if "-R" in words else slurm_answer("sinfo", nodes)

    return answer


def ask(answers: Answers, *, cluster: str = "training", job: str | None = None) -> tuple[Gathered, Diagnosis]:
    """Gather the account's data, and return the findings."""
    found = gather(cluster, Account(answers).client, job=job, progress=lambda _line: None)
    return found, diagnose_evidence(found, cluster=cluster, about=f"job-{job}" if job else None)
