"""One change, and what a deploy would do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Policy = Literal["live", "drain", "stop", "never"]
"""When ParallelCluster takes a change: at any time; while nodes are drained; with a stopped fleet; never."""
Verdict = Literal["live", "rolling", "fleet stops", "not while nodes run", "impossible"]
REFUSED: tuple[Verdict, ...] = ("not while nodes run", "impossible")
"""The deploy would fail."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that differs between what stands and what is asked for."""

    what: str
    """A flag; else a key of the cluster config."""
    old: str
    new: str
    verdict: Verdict
    why: str = ""
    """What happens, or why it cannot."""
    way: str = ""
    """What to type instead, or besides."""


def decide(
    policy: Policy, *, what: str, old: str, new: str, busy: bool, on_busy: str, cluster_name: str
) -> Change:
    """What the provider does about a change of the cluster (assets/cluster_provider/updating.py, fleet.py).

    Args:
        busy: compute nodes run.
        on_busy: the flag: fail, drain, stop.
    """

    def told(verdict: Verdict, why: str = "", way: str = "") -> Change:
        return Change(what=what, old=old, new=new, verdict=verdict, why=why, way=way)

    if policy == "live":
        return told("live")
    if policy == "never":
        return told("impossible", "kept for a cluster's life", second_cluster(cluster_name))
    if policy == "drain" and on_busy == "drain":
        return told("rolling", "nodes end their jobs, then are replaced")
    if not busy or on_busy == "stop":
        which = "running nodes and their jobs end" if busy else "no node runs"
        return told("fleet stops", f"{which}; the fleet is stopped and started again")
    if on_busy == "drain":
        return told("not while nodes run", "draining is not enough for it", "-c on_busy=stop, or wait")
    ways = "-c on_busy=drain lets jobs end first, stop ends them" if policy == "drain" else "-c on_busy=stop"
    return told("not while nodes run", "on_busy=fail: the deploy fails", f"{ways}; or wait")


def second_cluster(cluster_name: str) -> str:
    """The way round what a cluster cannot take."""
    return (
        f"a second cluster on the same network and storage: -c cluster_name={cluster_name[:38]}-2; or leave "
        "it as it was"
    )
