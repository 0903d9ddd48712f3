"""Finds the changes of network and storage, by the rules of their guards, before any deploy."""

from collections.abc import Iterator

from ops.account.deployed_flags import guarded
from ops.asset_code import asset_code
from ops.plan.change import Change
from ops.plan.deployed import Deployed
from training_cluster.flags.settings import Settings
from training_cluster.functions.guarded import Guarded
from training_cluster.network.guarded import guarded_network
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK
from training_cluster.storage.guarded import guarded_storage

_STACKS = (NETWORK_STACK, STORAGE_STACK)


def foundation_changes(settings: Settings, deployed: Deployed) -> list[Change]:
    """Return each guarded value that differs, and the zone; empty if neither stack exists."""
    return [*_zone(settings, deployed), *_guarded(settings, deployed)]


def _wanted(stack: str, settings: Settings) -> dict[str, Guarded]:
    if stack == NETWORK_STACK:
        return guarded_network(settings)
    # The file systems' network is NetworkStack's, which has a guard of its own.
    return guarded_storage(settings, vpc_id="", subnet_id="", node_security_group_id="")


def _guarded(settings: Settings, deployed: Deployed) -> Iterator[Change]:
    rules, network = asset_code("guard", "transitions").transitions, guarded_network(settings)
    for stack in _STACKS:
        kept = guarded(deployed.templates.get(stack))
        wanted = {
            flag: value
            for flag, value in _wanted(stack, settings).items()
            if flag in kept and not (stack == STORAGE_STACK and flag in network)
        }
        old = {flag: {"value": kept[flag]["value"]} for flag in wanted}
        new = {flag: value.as_property() for flag, value in wanted.items()}
        changed = [flag for flag in new if old[flag]["value"] != new[flag]["value"]]
        alone = {flag: rules.refused_changes({flag: old[flag]}, {flag: new[flag]}) for flag in changed}
        together = rules.refused_changes(old, new) if not any(alone.values()) else []
        for flag in changed:
            refused = alone[flag] or [each for each in together if each.startswith(f"{flag}: ")]
            yield _change(flag, old[flag]["value"], wanted[flag], refused)


def _change(flag: str, old: str, wanted: Guarded, refused: list[str]) -> Change:
    before, after = old or "(own)", wanted.value or "(own)"
    if not refused:
        return Change(what=flag, old=before, new=after, verdict="live", why=wanted.note)
    # "fsx_gib: 2400 -> 1200 is not possible: it can only grow. FSx makes ..."
    why, _, mend = refused[0].removeprefix(f"{flag}: {before} -> {after} ").partition(". ")
    return Change(what=flag, old=before, new=after, verdict="impossible", why=why, mend=mend)


def _zone(settings: Settings, deployed: Deployed) -> Iterator[Change]:
    here = deployed.output(NETWORK_STACK, "ZoneId"), deployed.output(NETWORK_STACK, "ZoneName")
    if settings.zone != "auto" and here[0] and settings.zone not in here:
        yield Change(
            what="zone",
            old=f"{here[0]} ({here[1]})",
            new=settings.zone,
            verdict="impossible",
            why="network and file systems can never move to another zone",
            mend=f"leave zone out, or -c zone={here[0]}",
        )
