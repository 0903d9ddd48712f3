"""Reads the logs of a failed cluster from the account. A source that cannot be read hides no other."""

import contextlib
import datetime
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.clusters import describe_cluster
from ops.account.head_node import HeadNode, head_node_for_caller
from ops.account.image_stacks import image_of_stack, is_image_stack
from ops.account.session import ClientOf
from ops.account.stacks import cluster_stack_name, deployed_name, find_stacks
from ops.diagnose import cluster_logs, stacks
from ops.diagnose.stacks import StackEvents
from ops.diagnose.state import AskedJob, SlurmState, state_of
from ops.diagnose.texts import Gathered
from ops.diagnose.times import is_before, split
from ops.jobs.lookup import read_failed, read_jobs, read_nodes
from ops.usage import OpsError
from training_cluster.problems import ConfigurationError
from training_cluster.stack_names import STORAGE_STACK

_MAX_OBJECTS, _MAX_OBJECT_BYTES = 40, 8 << 20
Progress = Callable[[str], None]


def gather(cluster_name: str, client: ClientOf, *, job: str | None, progress: Progress) -> Gathered:
    """Read every source, and return the texts.

    Raises:
        ConfigurationError: no cluster can have this name.
        OpsError: the account has nothing of such a cluster.
        BotoCoreError: AWS does not answer, or there are no credentials.
    """
    cluster_stack_name(cluster_name)
    # Without credentials every source would fail alike; this call raises the one error that says so.
    client("sts").get_caller_identity()
    with contextlib.suppress(ClientError):  # the sources report it
        cluster_name = deployed_name(cluster_name, client)
    gathering = _Gathering(cluster_name, client, job, progress)
    gathering.ask_all()
    if not any(True for _ in gathering.found.texts()):
        describe_cluster(cluster_name, client)  # raises: there is no such cluster
    return gathering.found


def job_name(job: str) -> str:
    """Return the prefix of the names of a job's texts, which also names their source."""
    return f"job-{job}"


class _Gathering:
    def __init__(self, cluster_name: str, client: ClientOf, job: str | None, progress: Progress) -> None:
        self.found = Gathered(cluster_name)
        self._cluster, self._client, self._progress = cluster_name, client, progress
        self._job_id = job
        self._own = cluster_stack_name(cluster_name)
        self._head_node_id: str | None = None
        self._statuses: dict[str, str] = {}
        self._events: StackEvents | None = None
        self._gone = ""
        self._asked: AskedJob | None = None
        self._state: SlurmState | None = None

    def ask_all(self) -> None:
        """Read one source after another. If the job has succeeded, no other source is of interest."""
        if self._job_id is not None:
            self._take(job_name(self._job_id), self._job)
        if self._asked is None or not self._asked.is_good:
            self._ask_about_the_cluster()
        self.found.state = state_of(
            self._cluster,
            statuses=self._statuses,
            events=self._events,
            gone=self._gone,
            asked=self._asked,
            slurm=self._state,
        )

    def _ask_about_the_cluster(self) -> None:
        sources: dict[str, Callable[[], None]] = {
            "stacks": self._stacks,
            "saved failure logs": self._failure_logs,
            "console of the head node": self._console,
            "CloudWatch logs": self._logs,
            "image builds": self._image_logs,
            "Slurm": self._slurm,
        }
        for name, source in sources.items():
            self._take(name, source)

    def _take(self, name: str, source: Callable[[], None]) -> None:
        self._progress(f"reading: {name}")
        try:
            source()
        except (ConfigurationError, BotoCoreError, ClientError) as error:
            self.found.unread[name] = _in_one_line(error)

    @property
    def _fixed(self) -> datetime.datetime | None:
        """Time before which the failures of deploys are over."""
        if self._gone:
            return datetime.datetime.max.replace(tzinfo=datetime.UTC)
        return (self._events.succeeded or self._events.created) if self._events else None

    def _stacks(self) -> None:
        cloudformation = self._client("cloudformation")
        self._statuses, text = stacks.stack_statuses(self._cluster, cloudformation)
        self.found.add("stacks.txt", text)
        if self._statuses and not {self._own, self._cluster} & set(self._statuses):
            try:
                describe_cluster(self._cluster, self._client)
            except OpsError as error:
                self._gone = _in_one_line(error)
        for name in self._statuses:
            events = stacks.read_events(name, cloudformation)
            if name == self._own:
                self._events = events
            self.found.add(f"{name}-stack-events.txt", events.text)

    def _failure_logs(self) -> None:
        """Read the newest folder that the cluster's provider saved: folder names begin with a time."""
        ours, _ = find_stacks(self._client("cloudformation"))
        storage = ours.get(STORAGE_STACK)
        bucket = storage.outputs.get("BucketName") if storage else None
        if not bucket:
            return
        s3, prefix = self._client("s3"), f"logs/{self._cluster}/"
        folders = _folders(s3, bucket, prefix)
        if not folders:
            return
        saved = max(folders).removeprefix(prefix)
        submitted = self._asked.submitted if self._asked else None
        is_earlier = is_before(saved, self._fixed) or is_before(saved, submitted)
        answer = s3.list_objects_v2(Bucket=bucket, Prefix=prefix + saved, MaxKeys=_MAX_OBJECTS)
        for each in answer.get("Contents", []):
            key = each["Key"]
            end = {"Range": f"bytes=-{_MAX_OBJECT_BYTES}"} if each["Size"] > _MAX_OBJECT_BYTES else {}
            body = s3.get_object(Bucket=bucket, Key=key, **end)["Body"].read()
            self.found.add(f"s3/{key}", body.decode(errors="replace"), is_earlier=is_earlier)

    def _console(self) -> None:
        ec2 = self._client("ec2")
        self._head_node_id = cluster_logs.head_node_id(self._cluster, ec2)
        if self._head_node_id:
            self.found.add("console-output.txt", cluster_logs.console(self._head_node_id, ec2))

    def _logs(self) -> None:
        logs = self._client("logs")
        over = (self._asked and self._asked.submitted) or self._fixed
        if group := cluster_logs.find_log_group(self._cluster, logs):
            for stream in cluster_logs.wanted_streams(group, logs):
                earlier, later = split(cluster_logs.tail(group, stream, logs), over)
                self.found.add(f"earlier/cloudwatch/{stream}", earlier, is_earlier=True)
                self.found.add(f"cloudwatch/{stream}", later)

    def _image_logs(self) -> None:
        logs = self._client("logs")
        for name, status in self._statuses.items():
            if is_image_stack(name) and ("FAILED" in status or "ROLLBACK" in status):
                group = f"/aws/imagebuilder/{image_of_stack(name)}"
                pages = logs.describe_log_streams(
                    logGroupName=group, orderBy="LastEventTime", descending=True, limit=2
                )
                for stream in pages["logStreams"]:
                    at = stream["logStreamName"]
                    self.found.add(f"cloudwatch{group}/{at}", cluster_logs.tail(group, at, logs))

    def _slurm(self) -> None:
        if not self._head_node_id and self._statuses.get(self._own) not in stacks.SUCCESSES:
            return
        head_node = self._head_node()
        self.found.add("sinfo-R.txt", cluster_logs.node_reasons(head_node))
        if self._job_id is None:
            partitions, unavailable = read_nodes(head_node)
            self._state = SlurmState(
                failed=read_failed(head_node),
                queue=read_jobs(head_node).queue,
                partitions=partitions,
                unavailable=unavailable,
                cluster_name=self._cluster,
            )

    def _job(self) -> None:
        job = str(self._job_id)
        self._head_node_id = cluster_logs.head_node_id(self._cluster, self._client("ec2"))
        self._asked, texts = cluster_logs.read_job(job, self._head_node())
        for suffix, content in texts.items():
            self.found.add(f"{job_name(job)}{suffix}", content, is_earlier=self._asked.is_good)

    def _head_node(self) -> HeadNode:
        if not self._head_node_id:
            raise OpsError(f"EC2 lists no head node of the cluster {self._cluster}.")
        return head_node_for_caller(self._cluster, self._head_node_id, self._client)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split("\n  type:")[0].split())


def _folders(s3: Any, bucket: str, prefix: str) -> list[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    return [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
