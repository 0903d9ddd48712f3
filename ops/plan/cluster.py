"""Finds the changes of a deployed cluster, by the rules of the real library and of the provider."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.pcluster.update_policies import Config, Judge, Policy, Refused
from ops.plan.change import Change, decide, second_cluster
from ops.plan.deployed import Deployed
from ops.plan.flags import changed_flags, with_flag
from ops.plan.ids import Rendered, render_config
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.config_diff import covers, differences, shown
from training_cluster.problems import ConfigurationError

_SCRIPTS = "HeadNode.CustomActions.OnNodeUpdated"
_STRATEGY = "Scheduling.SlurmSettings.QueueUpdateStrategy"  # steers an update, and is no change
_WORST_FIRST: tuple[Policy, ...] = ("never", "stop", "drain")
_NO_LOGIN_NODES = "one always remains, since the library requires its count to be 0 first"


@dataclass(frozen=True, kw_only=True)
class ClusterChanges:
    """Every change of a cluster, with the config that the deploy would render."""

    changes: tuple[Change, ...]
    rendered: Rendered
    is_changed: bool
    """True if the deploy would update the cluster."""


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A flag, or a key of the config, with the library's update policy."""

    what: str
    old: str
    new: str
    policy: Policy
    kept: tuple[str, ...] = ()
    """Changes that the provider refuses, whatever the policy of the library is."""


def cluster_changes(
    before: Settings | None,
    after: Settings,
    *,
    deployed: Deployed,
    busy: bool,
    judge: Judge,
    client: ClientOf,
) -> ClusterChanges:
    """Compare a deployed cluster with the flags.

    Args:
        before: the former flags; None if unknown: then the changed keys of the config are returned instead.
        busy: True if compute nodes run.

    Raises:
        OpsError: the library does not answer.
        botocore's errors.
    """
    assert deployed.config, "the cluster is deployed"
    rendered = render_config(after, deployed, client)
    current, wanted = deployed.config, rendered.config
    former = render_config(before, deployed, client).config if before else wanted
    flags = list(changed_flags(before, after)) if before else []

    def config_of(settings: Settings) -> Config:
        return render_config(settings, deployed, client).config

    pairs = {
        flag: _alone(flag, before, after, config_of) or (former, wanted) for flag, _, _ in flags if before
    }
    of_app, *of_flags = judge([(current, former), *pairs.values()])
    judged = [
        _Judged(
            what=flag,
            old=old,
            new=new,
            policy=refused.policy,
            kept=tuple(map(str, _changes_of_kept(*pairs[flag]))),
        )
        for (flag, old, new), refused in zip(flags, of_flags, strict=True)
    ]
    judged += _others(current, former, of_app)
    decided = [_decide(each, judged, busy=busy, after=after) for each in judged]
    return ClusterChanges(
        changes=(*_version(deployed, after), *decided),
        rendered=rendered,
        is_changed=any(path != _STRATEGY for path, _, _ in differences(current, wanted)),
    )


def _alone(
    flag: str, before: Settings, after: Settings, config_of: Callable[[Settings], Config]
) -> tuple[Config, Config] | None:
    """Return the configs without and with the change of one flag, made to the former flags, else to the new.

    None if the flag contradicts the others both times.
    """
    try:
        return config_of(before), config_of(with_flag(before, after, flag))
    except ConfigurationError:
        pass
    try:
        return config_of(with_flag(after, before, flag)), config_of(after)
    except ConfigurationError:
        return None


def _others(current: Config, former: Config, refused: Refused) -> Iterator[_Judged]:
    """Yield the differences that no flag explains, such as scripts, images or another release of this app."""
    for path, old, new in differences(current, former):
        if path == _STRATEGY:
            continue
        if covers(path, _SCRIPTS):
            yield _Judged(what="scripts", old="last deploy's", new="this app's", policy="live")
            continue
        policies = {refused.policy_of(key) for key in refused.keys if covers(key, path)}
        policy: Policy = next((each for each in _WORST_FIRST if each in policies), "live")
        kept = tuple(str(each) for each in _changes_of_kept(current, former) if covers(path, each.key))
        yield _Judged(what=path, old=shown(old), new=shown(new), policy=policy, kept=kept)


def _changes_of_kept(before: Config, after: Config) -> list[Any]:
    return list(asset_code("cluster_provider", "immutable").immutable.changes(before, after))


def _decide(each: _Judged, judged: list[_Judged], *, busy: bool, after: Settings) -> Change:
    named = {"what": each.what, "old": each.old, "new": each.new}
    if each.kept:
        why = f"it cannot change during a cluster's life ({'; '.join(each.kept)})"
        return Change(**named, verdict="impossible", why=why, mend=second_cluster(after.cluster_name))
    if each.what == "login_nodes" and each.policy == "never" and after.login_nodes == 0:
        return Change(**named, verdict="impossible", why=_NO_LOGIN_NODES, mend="-c login_nodes=1")
    # If one change stops the fleet, draining is not enough for the others either.
    stops = each.policy == "drain" and any(other.policy == "stop" for other in judged)
    change = decide(
        "stop" if stops else each.policy,
        **named,
        busy=busy,
        on_busy=after.on_busy,
        cluster_name=after.cluster_name,
    )
    declared = (
        facts_of(Settings.model_fields[each.what]).on_change if each.what in Settings.model_fields else ""
    )
    effect = (declared or "").partition("live: ")[2] if change.verdict == "live" else ""
    return replace(change, why=effect) if effect else change


def _version(deployed: Deployed, after: Settings) -> Iterator[Change]:
    if deployed.version not in (None, PCLUSTER_VERSION):
        yield Change(
            what="pcluster_version",
            old=str(deployed.version),
            new=PCLUSTER_VERSION,
            verdict="impossible",
            why="the version of ParallelCluster cannot change during a cluster's life",
            mend=second_cluster(after.cluster_name),
        )
