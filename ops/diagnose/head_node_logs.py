"""Logs that only the head node has: its console, Slurm's reasons, a job's log."""

from __future__ import annotations

import re
from typing import Any

from ops.account.head_node import HeadNode
from ops.account.session import unless
from ops.jobs.output import Output
from ops.usage import OpsError

_LINES = 1000
_NAMED = re.compile(r"^\s*(StdOut|StdErr)=(/\S.*)$", re.MULTILINE)


def head_node_id(cluster_name: str, ec2: Any) -> str | None:
    """Return the id of the newest head node, also a stopped one: a failed deploy has no output with it."""
    filters = [
        {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]},
        {"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    found = [
        (instance["LaunchTime"], instance["InstanceId"])
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]
    return str(max(found)[1]) if found else None


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


def job_log(job: str, head_node: HeadNode) -> tuple[str, str]:
    """Return Slurm's description of a job, and the end of its log. Raises OpsError."""
    described = head_node.run("scontrol", "show", "job", job, reads_only=True)
    files = dict(_NAMED.findall(described))
    path = files.get("StdOut")
    if not path:
        raise OpsError(f"Slurm does not say where the log of job {job} is.")
    return described, Output(path, head_node).read_tail(_LINES)
