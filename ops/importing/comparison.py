"""Compares an imported config with the one that its flags and files render, value by value."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ops.importing.translation import Config, Translation
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.resource_ids import PLACEHOLDERS, ResourceIds, with_existing
from training_cluster.flags.settings import Settings
from training_cluster.overrides.merge import (
    ADDED_TO,
    SETTINGS,
    UNITED,
    are_named,
    contrary_items,
    scripts_of,
    without_words,
)
from training_cluster.overrides.nodes import MORE_GROUPS, placed_nodes
from training_cluster.overrides.reserved import flag_for, is_off_without, reserved_reason
from training_cluster.pcluster.config_diff import shown

OUR_LUSTRE, OUR_EFS = "shared", "efs"
"""Names of our mounts in the cluster config."""
_UNITED = (*UNITED, MORE_GROUPS)
"""Ends of the paths of lists that are added to ours, item by item."""
_NAMES = ("Key", "Policy", "BucketName")
"""Keys that name an item of these lists; a line of slurm.conf has its own key."""
_CONTRARY = ("Tags", SETTINGS)
"""Lists of which the app keeps its own items."""
_TAKEN = ("SlurmQueues", "SubnetId")
"""Parts of keys that become queues of the file, or the subnets of your own network."""
_OURS = tuple(f"SharedStorage[{name}]." for name in (OUR_LUSTRE, OUR_EFS))


class Unlike(NamedTuple):
    """A value that the imported config has, and the other one does not have."""

    path: tuple[str, ...]
    """Keys that lead to it; an item of a list by its name in brackets."""
    value: Any
    """Value; of lists that are united, the items that are missing."""
    ours: Any

    @property
    def key(self) -> str:
        """Path in ParallelCluster's form, such as Scheduling.SlurmQueues[gpu].CapacityType."""
        return ".".join(self.path).replace(".[", "[")

    @property
    def is_united(self) -> bool:
        """True for a list whose items are added to ours."""
        return self.key.endswith(_UNITED) and isinstance(self.value, list)

    @property
    def is_contrary(self) -> bool:
        """True for a setting of a queue or a compute resource that the app has otherwise."""
        return SETTINGS in self.path[:-1] and self.ours is not None


def ids_of(settings: Settings, region: str) -> ResourceIds:
    """Return the ids that the flags name; samples stand for what a deploy creates."""
    samples = replace(PLACEHOLDERS, region=region, bootstrap_budget_s=bootstrap_budget_s(settings))
    return with_existing(samples, settings)


def in_their_keys(config: Config, settings: Settings) -> dict[str, Any]:
    """Return a rendered config with what the app does outside of it, in ParallelCluster's keys."""
    seen = with_storage(config, settings)
    for _, node in placed_nodes(seen):
        ours, *more = node["Networking"]["SecurityGroups"]
        node["Networking"] |= {"SecurityGroups": [ours], MORE_GROUPS: more}
    return seen


def with_storage(config: Config, settings: Settings) -> dict[str, Any]:
    """Return a rendered config with the keys of our new file systems, which StorageStack makes."""
    seen = copy.deepcopy(dict(config))
    storage = {each["Name"]: each for each in seen["SharedStorage"]}
    if not settings.fsx_id:
        storage[OUR_LUSTRE]["FsxLustreSettings"] |= _lustre(settings)
    if not settings.efs_id:
        storage[OUR_EFS]["EfsSettings"] |= _efs(settings)
    return seen


def _lustre(settings: Settings) -> dict[str, Any]:
    durable = settings.fsx_type == "persistent2"
    speed = {"PerUnitStorageThroughput": int(settings.fsx_mbps_per_tib)} if durable else {}
    return {
        "DeploymentType": "PERSISTENT_2" if durable else "SCRATCH_2",
        "StorageCapacity": settings.fsx_gib,
        **{"StorageType": "SSD", "FileSystemTypeVersion": "2.15", "DataCompressionType": "LZ4"},
        "DeletionPolicy": "Retain",
        **speed,
    }


def _efs(settings: Settings) -> dict[str, Any]:
    throughput = settings.efs_mibps
    return {
        **{"Encrypted": True, "PerformanceMode": "generalPurpose", "DeletionPolicy": "Retain"},
        **({"ProvisionedThroughput": throughput} if throughput else {"ThroughputMode": "elastic"}),
    }


def unlike(theirs: Any, ours: Any, path: tuple[str, ...] = ()) -> Iterator[Unlike]:
    """Yield what a part of the imported config has, and ours has not or otherwise."""
    here = Unlike(path, theirs, ours)
    if theirs in (None, {}, []) or theirs == ours:
        return
    if path and path[-1] in ADDED_TO:
        if not all(each in scripts_of(ours) for each in scripts_of(theirs)):
            yield here
    elif isinstance(theirs, Mapping):
        for key, value in theirs.items():
            inner = ours.get(key) if isinstance(ours, Mapping) else None
            yield from unlike(value, inner, (*path, str(key)))
    elif here.is_united:
        if missing := [each for each in theirs if any(_missing(each, ours or []))]:
            yield Unlike(path, missing, ours)
    elif are_named(theirs):
        named = {each.get("Name"): each for each in ours or []}
        for item in theirs:
            inner = {key: value for key, value in item.items() if key != "Name"}
            yield from unlike(inner, named.get(item["Name"]), (*path, f"[{item['Name']}]"))
    elif not (theirs is False and ours is None and is_off_without(here.key)):
        yield here


def _missing(item: Any, ours: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what ours lacks of an item: of a line of slurm.conf each setting."""
    if not isinstance(item, Mapping) or {*_NAMES} & {*item}:
        if item not in ours:
            name = next((item[each] for each in _NAMES if each in item), "")
            yield str(name), item.get("Value", item) if isinstance(item, Mapping) else item
        return
    known = {part for each in ours for name, value in each.items() for part in _words(name, value)}
    yield from ((name, value) for name, value in item.items() if not _words(name, value) <= known)


def _words(name: str, value: Any) -> set[tuple[str, str]]:
    return {(name.lower(), each.strip().lower()) for each in str(value).split(",")}


def flags_of(theirs: Config) -> dict[str, str]:
    """Return the flags that set keys outside of queues and network."""
    keys = [each for each in unlike(theirs, {}) if not any(part in each.key for part in _TAKEN)]
    set_by_flags = [each for each in keys if reserved_reason(each.value, each.key)]
    return dict(typed for each in set_by_flags if (typed := flag_for(each.key, each.value)))


def overrides_of(found: Iterable[Unlike], to: Translation) -> dict[str, Any]:
    """Return overrides with what they may set."""
    overrides: dict[str, Any] = {}
    for each in found:
        value = each.value
        if to.is_lost(each.key):
            continue
        if each.is_united and each.path[-1] in _CONTRARY:
            contrary = contrary_items(each.ours or [], value)
            for name, (words, reason) in contrary.items():
                to.lose(f"{each.key}[{name}]", ",".join(words), reason)
            left = [{key: _without(key, of, contrary) for key, of in item.items()} for item in value]
            kept = ({key: of for key, of in item.items() if of != "" or key not in contrary} for item in left)
            value = [item for item in kept if item and item.get("Key") not in contrary]
        elif not each.is_united and (reserved_reason(value, each.key) or each.is_contrary):
            continue
        if value != []:
            _put(overrides, each.path, value)
    return overrides


def _without(name: str, value: Any, contrary: Mapping[str, tuple[list[str], str]]) -> Any:
    return without_words(value, contrary[name][0]) if name in contrary else value


def _put(place: Any, path: tuple[str, ...], value: Any) -> None:
    """Put a value at a path, with the items by name and the keys that lead to it."""
    step, *rest = path
    if step.startswith("["):
        item = next((each for each in place if f"[{each['Name']}]" == step), None)
        if item is None:
            place.append(item := {"Name": step[1:-1]})
        _put(item, tuple(rest), value)
    elif rest:
        _put(place.setdefault(step, [] if rest[0].startswith("[") else {}), tuple(rest), value)
    else:
        place[step] = value


def note_differences(theirs: Config, final: Config, to: Translation) -> None:
    """Note each value of the imported config that the final one does not have."""
    for each in unlike(theirs, final):
        if to.is_lost(each.key):
            continue
        rendered = f"rendered as {shown(each.ours)}"
        if each.is_united:
            for item in each.value:
                for name, value in _missing(item, each.ours or []):
                    path = f"{each.key}[{name}]" if name else each.key
                    if not to.is_lost(path):
                        to.lose(path, value, rendered)
        elif each.key.startswith(_OURS) and each.ours is not None:
            words = f"{shown(each.value)} -> {shown(each.ours)}: the app makes or mounts it so"
            to.note("replaced", each.key, words)
        else:
            to.lose(each.key, each.value, reserved_reason(each.value, each.key) or rendered)
