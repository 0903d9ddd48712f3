"""Logs of a cluster: in CloudWatch, and those that only its head node has (console, reasons, a job's log)."""

import datetime
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.head_node import HeadNode
from ops.account.session import every, unless
from ops.diagnose.state import AskedJob
from ops.jobs.follow import find_log, state_line
from ops.jobs.lookup import job_options, read_accounts
from ops.jobs.slurm import FAILED

# Logs of ParallelCluster and of our bootstrap -> the number of nodes whose log is read, newest first.
_LOGS = {
    "bootstrap_error_msg": 3,
    "chef-client": 2,
    "cfn-init": 1,
    "cloud-init-output": 4,
    "clustermgtd": 1,
    "slurm_resume": 1,
    "slurmctld": 1,
    "slurmd": 2,
    "training-cluster-bootstrap": 4,
    "training-cluster-health": 4,
}
_LINES, _MAX_STREAMS = 1000, 500
_TASK = re.compile(r"(\d+)_\[?(\d+)")


def find_log_group(cluster_name: str, logs: Any) -> str | None:
    """Return the newest log group of a cluster, None without one: each failed deploy leaves one."""
    prefix = f"/aws/parallelcluster/{cluster_name}-"
    groups = every(logs, "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
    names = (str(group["logGroupName"]) for group in groups)
    return max((name for name in names if re.fullmatch(r"\d{12}", name.removeprefix(prefix))), default=None)


def wanted_streams(group: str, logs: Any) -> Iterator[str]:
    """Yield the names of the most useful streams, the last written first."""
    asked = {"logGroupName": group, "orderBy": "LastEventTime", "descending": True}
    taken: Counter[str] = Counter()
    for each in itertools.islice(every(logs, "describe_log_streams", "logStreams", **asked), _MAX_STREAMS):
        stream = each["logStreamName"]
        log = stream.rpartition(".")[2]
        if taken[log] < _LOGS.get(log, 0):
            taken[log] += 1
            yield stream


def tail(group: str, stream: str, logs: Any) -> str:
    """Return the end of one stream, one line per event."""
    answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=_LINES, startFromHead=False)
    return "\n".join(f"{_time(event['timestamp'])} {event['message']}" for event in answer["events"])


def _time(ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def head_node_id(cluster_name: str, ec2: Any) -> str | None:
    """Return the id of the newest head node, also a stopped one: a failed deploy has no output with it."""
    filters = [
        {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]},
        {"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]},
    ]
    found = every(ec2, "describe_instances", "Reservations", "Instances", Filters=filters)
    newest = max(((each["LaunchTime"], each["InstanceId"]) for each in found), default=None)
    return str(newest[1]) if newest else None


def console(instance_id: str, ec2: Any) -> str:
    """Return the console output of the instance."""
    answer = unless(
        lambda: ec2.get_console_output(InstanceId=instance_id, Latest=True),
        "UnsupportedOperation",  # instances that are not built on Nitro
    ) or ec2.get_console_output(InstanceId=instance_id)
    return str(answer.get("Output") or "")


def node_reasons(head_node: HeadNode) -> str:
    """Return the reasons why nodes are down or drained. Without the format Slurm truncates them."""
    return head_node.run("sinfo", "-R", "--format=%70E %N", reads_only=True)


def read_job(job_id: str, head_node: HeadNode) -> tuple[AskedJob, dict[str, str]]:
    """Return the state of a job, and its texts by the suffix of their names, also if Slurm has forgotten it.

    Of an array, the task is read that failed, or else one that has not completed.

    Raises OpsError and botocore's errors.
    """
    log = find_log(job_id, head_node)
    texts = {".log": log.output.read_tail(_LINES)}
    if log.job is None:
        return _accounted(job_id, head_node, f"Slurm has forgotten how job {job_id} ended."), texts
    # In UTC, as all other times: the head node may have another zone.
    described = head_node.run("env", "TZ=UTC", "scontrol", "show", "job", job_id, reads_only=True)
    texts["-scontrol.txt"] = described
    rows, _, _ = head_node.ask_slurm("squeue", *job_options(job_id))
    # Of tasks that wait together, 7_[3-9], the first one.
    found = {_TASK.match(row["id"]): row["state"] for row in rows}
    tasks = {f"{task[1]}_{task[2]}": state for task, state in found.items() if task}
    if tasks and "_" not in job_id:
        task = _worst(tasks)
        if tasks[task] != "COMPLETED":
            return read_job(task, head_node)
        every = f"Of job {job_id}, every task that Slurm lists is COMPLETED."
        return _accounted(job_id, head_node, every, is_good=True), texts
    # For a requeued job it is the last requeue's, which the first failure precedes.
    time = None if log.job.restarts else datetime.datetime.fromtimestamp(log.job.submitted, datetime.UTC)
    asked = AskedJob(
        id=job_id,
        sentence=f"Job {job_id} is {log.job.ending}." if log.job.has_ended else f"{state_line(log.job)}.",
        is_good=log.job.state == "COMPLETED",
        submitted=time,
    )
    return asked, texts


def _accounted(job_id: str, head_node: HeadNode, otherwise: str, *, is_good: bool = False) -> AskedJob:
    """Return a job as accounting has it, and this sentence and verdict if that does not have it."""
    if not (tasks := {job.id: job.state for job in read_accounts(job_id, head_node)}):
        return AskedJob(id=job_id, sentence=otherwise, is_good=is_good, submitted=None)
    task = _worst(tasks)
    is_good = tasks[task] == "COMPLETED"
    sentence = f"Job {job_id if is_good else task} is {tasks[task]}."
    return AskedJob(id=job_id, sentence=sentence, is_good=is_good, submitted=None)


def _worst(tasks: Mapping[str, str]) -> str:
    """Return the id of the first task that failed, or else has not completed, or else of the first."""
    return min(tasks, key=lambda id_: (tasks[id_] not in FAILED, tasks[id_] == "COMPLETED"))
