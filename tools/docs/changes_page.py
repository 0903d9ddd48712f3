"""docs/changes.md, the effect of a change of each flag on a cluster.

The ParallelCluster library judges the flags of the cluster (flag_changes.py), the guards' policies the flags
of network and storage. A flag that neither judges has the answer in its declaration (`on_change`).
"""

from collections.abc import Iterator, Mapping
from itertools import groupby

from ops.pcluster.update_policies import Refused
from tools.docs.flag_changes import SAMPLES, Sample, refused_changes
from tools.docs.table import table
from training_cluster.catalog.alerts import alert_names
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import FLAG_GROUPS, Settings
from training_cluster.functions.guarded import Guarded
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_each
from training_cluster.storage.guarded import guarded_storage

_HEAD = """\
# What a changed flag does

`make docs` generates this page from the update policies of the real ParallelCluster library and from the
app's guards, and a test compares them. Each row is one `cdk deploy` with another value, on an existing
cluster.

| word | what happens |
|---|---|
| live | the deploy makes the change; running nodes and their jobs continue |
| idle | live while no node runs. Otherwise `-c on_busy=drain` lets jobs finish first; `stop` ends them |
| stopped | an idle fleet is stopped and started again. While nodes run, `-c on_busy=stop` ends their jobs |
| refused | nothing changes, and the deploy prints what to type instead |

A deploy that leaves out a flag of the last one is refused by the guard of NetworkStack, before anything
changes. `trainctl deploy` repeats the flags of the last deploy. A flag without a value, `-c alarm_email=`,
returns to its default ([keep the other flags](how-to/operate.md#keep-the-other-flags)).

Every update also runs on each running node, and ParallelCluster waits 15 minutes for it. A node that cannot
apply it (a full disk, a mount that hangs) makes the deploy fail and roll back; `trainctl diagnose` names the
node.

A change that is refused or fails leaves every data resource in place. "A second cluster" means
`-c cluster_name=...` on the same network and storage.
"""

_SAFE_WAYS = """
## Safe alternatives, in the words of the guards

"""

_ALERTS = """
## Alerts that need metrics=prometheus or amp

With `metrics=cloudwatch` a cluster has only the alarms that
[need no Prometheus](how-to/monitoring.md#alerts). A change from another store to it ends these alerts; the
health checks still drain sick nodes:

"""

_BY_POLICY = {
    "never": "refused by the guard",
    "without clusters": "refused by the guard while a cluster exists",
    "changes": "live",
    "alone": "live",
    "grows": "more: live, if it is the only change of storage (file operations may pause for minutes, and "
    "are slower for hours while FSx spreads them); less: refused by the guard",
    "adopts": "an id: the app's own one remains but is no longer used, once no cluster uses it; "
    "another id, or none: refused by the guard",
}


def _verdict(sample: Sample, refused: Refused) -> str:
    if not refused.running:
        return "live"
    if not refused.drained:
        return "idle"
    if not refused.stopped:
        return "stopped"
    return f"refused: {sample.instead}"


def _of_the_cluster() -> dict[str, str]:
    """Return the library's answers by flag, the samples of one flag together."""
    judged = zip(SAMPLES, refused_changes(SAMPLES), strict=True)
    return {
        flag: "; ".join(dict.fromkeys(_row(*each) for each in rows))
        for flag, rows in groupby(judged, key=lambda each: each[0].flag)
    }


def _row(sample: Sample, refused: Refused) -> str:
    verdict = _verdict(sample, refused)
    return verdict if sample.what == "another" else f"{sample.what}: {verdict}"


def _guarded() -> dict[str, Guarded]:
    settings = read_each(dict.fromkeys(Settings.model_fields, ""))  # each is given, with its default
    network = dict.fromkeys(("vpc_id", "subnet_id", "node_security_group_id"), "any")
    return guarded_storage(settings, **network) | guarded_network(settings)


def _safe_ways() -> Iterator[str]:
    for flag, value in _guarded().items():
        if value.policy not in ("alone", "changes"):
            yield f"- `{flag}`: {value.safe_way.replace('{old}', 'OLD').replace('{new}', 'NEW')}\n"


def verdicts() -> dict[str, str]:
    """Return the effect of a change, by flag; the words on the field come first."""
    guarded = {flag: _BY_POLICY[value.policy] for flag, value in _guarded().items()}
    on_fields = {flag: facts_of(info).on_change for flag, info in Settings.model_fields.items()}
    return guarded | _of_the_cluster() | {flag: text for flag, text in on_fields.items() if text}


def render_changes_page() -> str:
    """Render docs/changes.md: one table a group of flags."""
    found = verdicts()
    tables = (_table(title, group.model_fields, found) for title, group in FLAG_GROUPS.items())
    alerts = f"{', '.join(alert_names())}.\n"
    return _HEAD + "".join(tables) + _SAFE_WAYS + "".join(_safe_ways()) + _ALERTS + alerts


def _table(title: str, flags: Mapping[str, object], found: Mapping[str, str]) -> str:
    rows = ((f"`{flag}`", found[flag]) for flag in flags)
    return f"\n## {title}\n\n{table(('flag', 'a change of it'), rows)}"
