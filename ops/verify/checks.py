"""The checks of `trainctl verify`; one that fails hides no other. None of them changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ops.account.clusters import Cluster, describe_cluster
from ops.account.head_node import find_head_node
from ops.account.session import ClientOf
from ops.preflight.not_checked import not_checked

_HEAD_NODE_MINUTES = 20


@dataclass(frozen=True, kw_only=True)
class Result:
    """The verdict of a check."""

    id: str
    claim: str
    verdict: Literal["held", "differs", "could not look"]
    seen: str
    expected: str
    not_in_rehearsal: str
    """Part of the claim that a rehearsal cannot show."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A claim, and the function that returns if it holds, with the figure seen."""

    id: str
    claim: str
    expected: str
    not_in_rehearsal: str
    look: Callable[[Cluster, ClientOf], tuple[bool, str]]

    def run(self, cluster: Cluster, client: ClientOf) -> Result:
        """Return the verdict; any error is its reason."""
        try:
            is_held, seen = self.look(cluster, client)
            verdict: Literal["held", "differs", "could not look"] = "held" if is_held else "differs"
        except Exception as error:  # reported in the result, and the other checks continue
            # AWS's words may have account ids, addresses and ARNs, so only the kind of the error is shown.
            verdict, seen = "could not look", type(error).__name__
            if (reason := not_checked(self.id, error).mend).startswith("ask for the permission"):
                seen = reason
        return Result(
            id=self.id,
            claim=self.claim,
            verdict=verdict,
            seen=seen,
            expected=self.expected,
            not_in_rehearsal=self.not_in_rehearsal,
        )


def run_checks(cluster_name: str, client: ClientOf) -> list[Result]:
    """Run every check. Raises OpsError if there is no such cluster, and botocore's errors."""
    cluster = describe_cluster(cluster_name, client)
    return [check.run(cluster, client) for check in CHECKS]


def _created_in_time(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    pages = client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=cluster.name)
    own = [
        each
        for page in pages
        for each in page["StackEvents"]
        if each["PhysicalResourceId"] == each["StackId"]
    ]
    begun = min(each["Timestamp"] for each in own if each["ResourceStatus"] == "CREATE_IN_PROGRESS")
    ended = min(each["Timestamp"] for each in own if each["ResourceStatus"] == "CREATE_COMPLETE")
    minutes = (ended - begun).total_seconds() / 60
    return minutes <= _HEAD_NODE_MINUTES, f"{minutes:.1f} minutes"


def _requeues(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    shown = find_head_node(cluster.name, client).run("scontrol", "show", "config", reads_only=True)
    lines = ("".join(line.split()) for line in shown.splitlines())
    found = next((line for line in lines if line.startswith("JobRequeue=")), "no JobRequeue")
    return found == "JobRequeue=1", found


CHECKS = (
    Check(
        id="cluster-stack-time",
        claim="ParallelCluster's stack is created in 10 to 20 minutes (docs/rehearsal.md).",
        expected=f"at most {_HEAD_NODE_MINUTES} minutes",
        not_in_rehearsal="The time: the local head node signals at once.",
        look=_created_in_time,
    ),
    Check(
        id="slurm-requeue",
        claim="Slurm has our JobRequeue in force (cluster/config.py), so that a job survives its node.",
        expected="JobRequeue=1",
        not_in_rehearsal="ParallelCluster's recipes, which write slurm.conf on AWS.",
        look=_requeues,
    ),
)
"""Every check, in the order of the report."""
