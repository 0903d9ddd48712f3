"""One change, and the way in which a deploy would make it."""

import shlex
from dataclasses import dataclass
from typing import Literal

from ops.asset_code import asset_code
from ops.pcluster.update_policies import Policy
from training_cluster.flags.settings import Settings

Verdict = Literal["live", "rolling", "fleet stops", "not while nodes run", "impossible"]
REFUSED: tuple[Verdict, ...] = ("not while nodes run", "impossible")
"""Verdicts with which the deploy would fail."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A difference between the deployed state and the flags."""

    what: str
    """Name of the flag, or of the key of the cluster config."""
    old: str
    new: str
    verdict: Verdict
    why: str = ""
    """Effect of the change, or the reason why it is refused."""
    mend: str = ""
    """Flags or commands to type instead, or in addition."""


def decide(
    policy: Policy, *, what: str, old: str, new: str, busy: bool, on_busy: str, cluster_name: str
) -> Change:
    """Return the provider's decision about a change (assets/cluster_provider/updating.py, fleet.py).

    Args:
        busy: True if compute nodes run.
        on_busy: value of the flag: fail, drain or stop.
    """

    def decision(verdict: Verdict, why: str = "", mend: str = "") -> Change:
        return Change(what=what, old=old, new=new, verdict=verdict, why=why, mend=mend)

    if policy == "live":
        return decision("live")
    if policy == "never":
        return decision("impossible", "kept for a cluster's life", second_cluster(cluster_name, what, new))
    if policy == "drain" and on_busy == "drain":
        return decision("rolling", "nodes finish their jobs, then are replaced")
    if not busy or on_busy == "stop":
        which = "running nodes and their jobs end" if busy else "no node runs"
        return decision("fleet stops", f"{which}; the fleet is stopped and started again")
    if on_busy == "drain":
        return decision("not while nodes run", "draining is not enough for it", "-c on_busy=stop, or wait")
    ways = "-c on_busy=drain lets jobs end first, stop ends them" if policy == "drain" else "-c on_busy=stop"
    return decision("not while nodes run", "on_busy=fail: the deploy fails", f"{ways}; or wait")


def second_cluster(cluster_name: str, what: str = "", new: str = "") -> str:
    """Return the advice for a change that a cluster can never take: with the value, if `what` is a flag."""
    messages = asset_code("cluster_provider", "cluster_state", "errors", "immutable", "messages").messages
    changed = " -c " + shlex.quote(f"{what}={new}") if what in Settings.model_fields else ""
    command = messages.second_cluster_command(cluster_name) + changed
    return f"a second cluster on the same network and storage: {command}; or keep the former value"
