"""List price of the nodes that run, and of those that ran in this month: an estimate, and no bill.

The bundle's file `prices` has a line for each compute resource: partition, resource, USD an hour, and the
line `head - USD`. Spot prices, discounts, disks, file systems and traffic are not in it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from slurm import Node
from slurm_nodes import each_once
from textfile import Sample, replace

_NODE = re.compile(r"^(.+)-(?:st|dy)-(.+)-\d+$")
HEAD = "head"
# Longest time without a measurement that counts, since the head node may have been off for longer.
_LONGEST_GAP_S = 900.0


def spend_samples(
    nodes: Iterable[Node], *, prices: Path, kept: Path, budget_usd: float | None
) -> Iterator[Sample]:
    """Yield prices and spend.

    Args:
        prices: file of the bundle.
        kept: file with the month's spend, which only this program writes.
        budget_usd: budget of a month; None without one.
    """
    rates = _read_prices(prices)
    burn = dict.fromkeys((partition for partition, _ in rates), 0.0)
    burn[HEAD] = rates.get((HEAD, "-"), 0.0)
    for node in each_once(nodes):
        if name := _NODE.match(node.name):
            burn[name[1]] = burn.get(name[1], 0.0) + rates.get((name[1], name[2]), 0.0)
    for partition, usd in burn.items():
        yield Sample("cluster_usd_per_hour", usd, {"partition": partition})
    for partition in {partition for partition, _ in rates} - {HEAD}:
        highest = max(usd for (each, _), usd in rates.items() if each == partition)
        yield Sample("cluster_node_usd_per_hour", highest, {"partition": partition})
    yield Sample("cluster_spend_usd", _add(kept, sum(burn.values())))
    if budget_usd:
        yield Sample("cluster_budget_usd", budget_usd)


def _read_prices(file: Path) -> dict[tuple[str, str], float]:
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {(partition, resource): float(usd) for partition, resource, usd in lines}


def _add(kept: Path, usd_per_hour: float) -> float:
    """Add the time since the last call to the month's spend; return the spend."""
    now = time.time()
    month = time.strftime("%Y-%m", time.gmtime(now))
    try:
        before = json.loads(kept.read_text(encoding="utf-8"))
        spent, since = float(before["usd"]), float(before["at"])
        is_same_month = before["month"] == month
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        spent, since, is_same_month = 0.0, now, True
    passed_s = min(max(0.0, now - since), _LONGEST_GAP_S)
    spent = (spent if is_same_month else 0.0) + usd_per_hour * passed_s / 3600
    replace(kept, json.dumps({"month": month, "usd": spent, "at": now}))
    return spent
