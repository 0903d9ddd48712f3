"""`python -m tools.docs.changes_page`: docs/changes.md, what a change of each flag does to a cluster.

The cluster's flags are judged by the ParallelCluster library (flag_changes.py), those of network and storage
by the values that the guards keep; the few that neither sees are said here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from tools.docs.flag_changes import SAMPLES, Refused, Sample, ask_library
from training_cluster.flags.settings import FLAG_GROUPS
from training_cluster.functions.guard import Guarded
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_settings
from training_cluster.storage.guarded import guarded_storage

_HEAD = """\
# What a changed flag does

Generated from the real ParallelCluster library's update policies and from our guards by `make docs`; a test
compares the two. Each row is one `cdk deploy` with another value, on a cluster that stands.

| it says | what happens |
|---|---|
| live | the deploy changes it; nodes that run and their jobs go on |
| idle | as live, while no compute node runs; else `-c on_busy=drain` lets jobs end first, `stop` ends them |
| stopped | an idle fleet is stopped and started again; while nodes run, `-c on_busy=stop` ends their jobs |
| refused | nothing is changed, and the deploy says what to type instead |

Flags are not remembered: one that is left out is its default again, for all clusters where it is one of
network or storage (without `endpoints=private` the endpoints go). Those that stay belong into cdk.json's
`context`.
Every update is applied on each node that runs, too, and ParallelCluster waits 15 minutes for that. A node
that cannot (a full disk, a mount that hangs) makes the deploy fail and roll back; `trainctl diagnose` names
it.
A change that is refused or fails leaves every data resource where it is. Where the safe way is a second
cluster, that is `-c cluster_name=...` on the same network and storage.
"""

_SAFE_WAYS = """
## The safe ways, as the guards say them

"""

_SECOND = "refused: a second cluster"
# What assets/cluster_provider/kept.py refuses, though the library would change it.
KEPT = {
    "home": "refused: what a cluster mounts stays for its life; a second cluster",
    "permissions_boundary": "refused: given, another or left out, since a cluster keeps its boundary for its "
    "life; a second cluster",
}

# What no cluster config and no guard shows.
_SAID = {
    "cluster_name": "another stack, with a cluster of its own; this one is not touched",
    "image_rebuild": "live: when ImageStack builds; the next deploy rolls an image out as `image` says",
    "workloads": "with image=build another image is built first, and rolled out as `image` says; else live: "
    "new nodes make the environments",
    "on_busy": "live: how the next update treats nodes that run",
    "pcluster_version": "refused at synth: a newer one is a newer release of this app, and a second cluster",
    "layer": "live: the provider's functions get another layer",
    "zone": "refused by NetworkStack, with the zones that would do; auto keeps the zone",
    "endpoints": "live",
    "ssh_from": "live",
    "ssh_from_anywhere": "live",
    "fsx_mbps_per_tib": "live, in place (files may stand still for minutes); refused with fsx_efa=on",
    "efs_mibps": "live: EFS changes it in place, once a day; alone, with no other change of storage",
    "bucket_name": "refused by the guard, for Lustre is linked to it; with fsx_id: as fsx_id",
    "budget_usd": "live",
    "alarm_email": "live: the new address gets a mail to confirm",
}
_MAY = {
    "never": "refused by the guard",
    "changes": "live",
    "alone": "live",
    "grows": "more: live, if it is the only change of storage (files may stand still for minutes, and are "
    "slower for hours while FSx spreads them); less: refused by the guard",
    "adopts": "given: the own one is kept and no longer used, once no cluster uses it; "
    "another, or left out: refused by the guard",
}


def _verdict(sample: Sample, refused: Refused) -> str:
    if sample.flag in KEPT:
        return KEPT[sample.flag]
    if not refused.running:
        return "live"
    if not refused.drained:
        return "idle"
    if not refused.stopped:
        return "stopped"
    if sample.what == "none":
        return "refused: one stays for the cluster's life, since the library wants its count at 0 first"
    return _SECOND


def _of_the_cluster() -> dict[str, str]:
    """By flag: what the library says of each sample, the changes of one flag together."""
    judged = zip(SAMPLES, ask_library(SAMPLES), strict=True)
    return {
        flag: "; ".join(dict.fromkeys(_row(*each) for each in rows))
        for flag, rows in groupby(judged, key=lambda each: each[0].flag)
    }


def _row(sample: Sample, refused: Refused) -> str:
    verdict = _verdict(sample, refused)
    return verdict if sample.what == "another" else f"{sample.what}: {verdict}"


def _guarded() -> dict[str, Guarded]:
    settings = read_settings({})
    network = dict.fromkeys(("vpc_id", "subnet_id", "node_security_group_id"), "any")
    return guarded_storage(settings, **network) | guarded_network(settings)


def _safe_ways() -> Iterator[str]:
    for flag, kept in _guarded().items():
        if kept.policy in ("alone", "changes"):
            continue
        yield f"- `{flag}`: {kept.safe_way.replace('{old}', 'OLD').replace('{new}', 'NEW')}\n"


def verdicts() -> dict[str, str]:
    """What happens, by flag: every flag has an answer, and one only."""
    return {flag: _MAY[kept.policy] for flag, kept in _guarded().items()} | _SAID | _of_the_cluster()


def render_changes_page() -> str:
    """Render the page: one table a group of flags."""
    found = verdicts()
    tables = (_table(title, group.model_fields, found) for title, group in FLAG_GROUPS.items())
    return _HEAD + "".join(tables) + _SAFE_WAYS + "".join(_safe_ways())


def _table(title: str, flags: Mapping[str, object], found: Mapping[str, str]) -> str:
    def rows() -> Iterator[str]:
        for flag in flags:
            yield f"| `{flag}` | {found[flag]} |"

    return f"\n## {title}\n\n| flag | a change of it |\n|---|---|\n" + "\n".join(rows()) + "\n"


if __name__ == "__main__":
    print(render_changes_page(), end="")
