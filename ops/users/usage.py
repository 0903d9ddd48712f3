"""Reads the use of nodes from Slurm's accounting, with the catalog's prices."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ops.account.deploy_command import deploy_command
from ops.account.head_node import MAX_OUTPUT_BYTES, CommandError, HeadNode
from ops.jobs.lookup import cluster_option, read_facts
from ops.printable import printable
from ops.usage import OpsError
from training_cluster.catalog.families import instance_hour

By = Literal["user", "account", "week"]
_HOUR_S, _FIELDS = 3600, 5
_SMALL = 0.1
"""Value below which two decimals would round too much away."""
_OFF = ("accounting storage is disabled", "not running a supported accounting_storage plugin")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Use of nodes by one user, account or week."""

    group: str
    jobs: int
    """Starts of jobs: one that started again counts twice."""
    node_hours: float
    gpu_hours: float
    """Hours of GPUs, or of other accelerators."""
    usd: float | None
    """On-demand list price; None if a type's price is unknown."""


def read_usage(head_node: HeadNode, *, by: By, since: str, until: str) -> tuple[Usage, ...]:
    """Read the use between two dates, the most node hours first.

    Raises:
        OpsError: accounting is off, or a date is wrong; and botocore's errors.
    """
    try:
        text = head_node.run_script("sum-usage.sh", by, since, until, reads_only=True)
    except CommandError as error:
        if not any(each in str(error) for each in _OFF):
            raise
        raise OpsError(
            f"{head_node.cluster_name} keeps no record of jobs: its accounting is off.\n"
            f"  type:   {deploy_command(head_node.cluster_name, 'accounting=new')}; it stops the fleet "
            "(on_busy)"
        ) from None
    if len(text.encode()) >= MAX_OUTPUT_BYTES:
        raise OpsError(
            f"More {by}s than Systems Manager returns.\n  type:   trainctl usage --since, a later date"
        )
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == _FIELDS - 1]
    facts = {partition: _facts(partition, head_node) for partition in {row[1] for row in rows}}
    return tuple(sum_usage(rows, facts))


def sum_usage(rows: list[list[str]], facts: Mapping[str, Mapping[str, str]]) -> Iterator[Usage]:
    """Sum the rows of sum-usage.sh over partitions; `facts`: environment of each partition's jobs."""
    groups = {row[0]: [each for each in rows if each[0] == row[0]] for row in rows}
    sums = []
    for group, parts in groups.items():
        node_s, gpu_s, usd = 0, 0, 0.0
        priced = True
        for _, partition, _, nodes, gpus in parts:
            known = facts.get(partition, {})
            node_s += int(nodes)
            # A record without GPUs comes from a cluster whose slurm.conf does not count them.
            gpu_s += int(gpus) or int(nodes) * int(known.get("ACCELERATORS_PER_NODE") or 0)
            price = instance_hour(known.get("INSTANCE_TYPE", ""))
            priced = priced and price is not None
            usd += int(nodes) / _HOUR_S * price.usd if price else 0
        sums.append(
            Usage(
                group=printable(group),
                jobs=sum(int(each[2]) for each in parts),
                node_hours=node_s / _HOUR_S,
                gpu_hours=gpu_s / _HOUR_S,
                usd=usd if priced else None,
            )
        )
    yield from sorted(sums, key=lambda each: (-each.node_hours, each.group))


def render_usage(found: tuple[Usage, ...], *, by: By, since: str, until: str, cluster_name: str) -> str:
    """Return a table, or a sentence if nobody used a node."""
    if not found:
        return f"No job had nodes between {since} and {until}: trainctl jobs{cluster_option(cluster_name)}"
    known = [each.usd for each in found if each.usd is not None]
    total = Usage(
        group="all",
        jobs=sum(each.jobs for each in found),
        node_hours=sum(each.node_hours for each in found),
        gpu_hours=sum(each.gpu_hours for each in found),
        usd=sum(known) if len(known) == len(found) else None,
    )
    rows = [(by.upper(), "JOBS", "NODE HOURS", "GPU HOURS", "USD"), *map(_row, (*found, total))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([*lines, f"{since} to {until}; USD: list prices on demand, of nodes with jobs alone."])


def _row(each: Usage) -> tuple[str, ...]:
    usd = "unknown" if each.usd is None else _figure(each.usd)
    return each.group, str(each.jobs), _figure(each.node_hours), _figure(each.gpu_hours), usd


def _figure(value: float) -> str:
    """Format with two decimals, and a small value with two digits other than zeros: 10 s are 0.0028 h."""
    decimals = 1 - math.floor(math.log10(value)) if 0 < value < _SMALL else 2
    return f"{value:,.{decimals}f}"


def _facts(partition: str, head_node: HeadNode) -> Mapping[str, str]:
    """Read a partition's facts; none of one that the cluster no longer has."""
    try:
        return read_facts(partition, head_node)
    except CommandError:
        return {}
