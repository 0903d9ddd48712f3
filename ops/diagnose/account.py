"""Reads the logs of a failed cluster from the account. A source that cannot be read hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.clusters import describe_cluster
from ops.account.head_node import HeadNode, head_node_for_caller
from ops.account.image_stacks import image_of_stack, is_image_stack
from ops.account.session import ClientOf
from ops.account.stacks import cluster_stack_name, find_stacks
from ops.diagnose import cloudwatch, head_node_logs, stacks
from ops.diagnose.texts import Gathered
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
    gathering = _Gathering(cluster_name, client, progress)
    gathering.ask_all(job)
    if not any(True for _ in gathering.found.texts()):
        describe_cluster(cluster_name, client)  # raises: there is no such cluster
    return gathering.found


def job_name(job: str) -> str:
    """Return the prefix of the names of a job's texts, which also names their source."""
    return f"job-{job}"


class _Gathering:
    def __init__(self, cluster_name: str, client: ClientOf, progress: Progress) -> None:
        self.found = Gathered()
        self._cluster, self._client, self._progress = cluster_name, client, progress
        self._head_node_id: str | None = None
        self._statuses: dict[str, str] = {}

    def ask_all(self, job: str | None) -> None:
        """Read one source after another."""
        sources: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
            "stacks": self._stacks,
            "the cluster": self._missing,
            "saved failure logs": self._failure_logs,
            "console of the head node": self._console,
            "CloudWatch logs": self._logs,
            "image builds": self._image_logs,
            "sinfo -R": self._reasons,
        }
        if job is not None:
            sources = {job_name(job): lambda: self._job(job), **sources}
        for name, source in sources.items():
            self._progress(f"reading: {name}")
            self._take(name, source)

    def _take(self, name: str, source: Callable[[], Iterator[tuple[str, str]]]) -> None:
        try:
            for text_name, content in source():
                self.found.add(text_name, content)
        except (ConfigurationError, BotoCoreError, ClientError) as error:
            self.found.unread[name] = " ".join(str(error).split("\n  type:")[0].split())

    def _stacks(self) -> Iterator[tuple[str, str]]:
        cloudformation = self._client("cloudformation")
        self._statuses, text = stacks.stack_statuses(self._cluster, cloudformation)
        yield "stacks.txt", text
        for name in self._statuses:
            yield f"{name}-stack-events.txt", stacks.stack_events(name, cloudformation)

    def _missing(self) -> Iterator[tuple[str, str]]:
        """Raise OpsError if CloudFormation has other stacks of this app, but none of this cluster."""
        if self._statuses and not {cluster_stack_name(self._cluster), self._cluster} & set(self._statuses):
            describe_cluster(self._cluster, self._client)
        yield from ()

    def _failure_logs(self) -> Iterator[tuple[str, str]]:
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
        answer = s3.list_objects_v2(Bucket=bucket, Prefix=max(folders), MaxKeys=_MAX_OBJECTS)
        for each in answer.get("Contents", []):
            key = each["Key"]
            end = {"Range": f"bytes=-{_MAX_OBJECT_BYTES}"} if each["Size"] > _MAX_OBJECT_BYTES else {}
            body = s3.get_object(Bucket=bucket, Key=key, **end)["Body"].read()
            yield f"s3/{key}", body.decode(errors="replace")

    def _console(self) -> Iterator[tuple[str, str]]:
        ec2 = self._client("ec2")
        self._head_node_id = head_node_logs.head_node_id(self._cluster, ec2)
        if self._head_node_id:
            yield "console-output.txt", head_node_logs.console(self._head_node_id, ec2)

    def _logs(self) -> Iterator[tuple[str, str]]:
        logs = self._client("logs")
        if group := cloudwatch.find_log_group(self._cluster, logs):
            for stream in cloudwatch.wanted_streams(group, logs):
                yield f"cloudwatch/{stream}", cloudwatch.tail(group, stream, logs)

    def _image_logs(self) -> Iterator[tuple[str, str]]:
        logs = self._client("logs")
        for name, status in self._statuses.items():
            if is_image_stack(name) and ("FAILED" in status or "ROLLBACK" in status):
                group = f"/aws/imagebuilder/{image_of_stack(name)}"
                pages = logs.describe_log_streams(
                    logGroupName=group, orderBy="LastEventTime", descending=True, limit=2
                )
                for stream in pages["logStreams"]:
                    at = stream["logStreamName"]
                    yield f"cloudwatch{group}/{at}", cloudwatch.tail(group, at, logs)

    def _reasons(self) -> Iterator[tuple[str, str]]:
        if self._head_node_id:
            yield "sinfo-R.txt", head_node_logs.node_reasons(self._head_node())

    def _job(self, job: str) -> Iterator[tuple[str, str]]:
        self._head_node_id = head_node_logs.head_node_id(self._cluster, self._client("ec2"))
        described, log = head_node_logs.job_log(job, self._head_node())
        yield f"{job_name(job)}.log", log
        yield f"{job_name(job)}-scontrol.txt", described

    def _head_node(self) -> HeadNode:
        if not self._head_node_id:
            raise OpsError(f"The cluster {self._cluster} has no head node.")
        return head_node_for_caller(self._cluster, self._head_node_id, self._client)


def _folders(s3: Any, bucket: str, prefix: str) -> list[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    return [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
