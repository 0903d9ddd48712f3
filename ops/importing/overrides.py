"""Keys of a cluster config that no flag has: overrides, as far as these may set them."""

from collections.abc import Iterator, Mapping
from typing import Any

from ops.importing.translation import Config, Translation, nodes_of
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.overrides.merge import contrary_items, scripts_of
from training_cluster.overrides.nodes import MORE_GROUPS
from training_cluster.overrides.reserved import flag_for, reserved_reason
from training_cluster.pcluster.config_diff import differences, shown

_ADDED_TO = ("OnNodeConfigured", "OnNodeUpdated")


def take_overrides(theirs: Config, ours: Config, to: Translation) -> None:
    """Take what differs from the config that flags and queues render.

    Args:
        theirs: the imported config.
        ours: the rendered config, without overrides.
    """
    to.overrides = _mapping(theirs, ours, "", to)


def _mapping(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], path: str, to: Translation
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in theirs.items():
        at = f"{path}.{key}" if path else key
        if value is None or _is_carried(at, to) or value == ours.get(key):
            continue
        left = _value(value, ours.get(key), at, to)
        if left not in (None, {}, []):
            found[key] = left
    return found


def _value(theirs: Any, ours: Any, path: str, to: Translation) -> Any:
    if path.endswith(_ADDED_TO):
        return theirs
    if isinstance(theirs, Mapping) and theirs:
        return _mapping(theirs, ours if isinstance(ours, Mapping) else {}, path, to)
    if _are_named(theirs):
        return list(_named(theirs, ours if isinstance(ours, list) else [], path, to))
    if path.endswith("SlurmSettings.CustomSlurmSettings"):
        return _settings(theirs, ours, path, to)
    if reason := reserved_reason(theirs, path):
        flag, typed = flag_for(path, theirs) or ("", "")
        if flag and "SlurmQueues" not in path:
            to.carry(path)
            to.flags[flag] = typed
        else:
            to.lose(path, theirs, reason)
        return None
    return theirs


def _settings(theirs: Any, ours: Any, path: str, to: Translation) -> Any:
    """Take the settings of slurm.conf that ours does not have, or has as a list of words."""
    contrary = contrary_items(ours, theirs)
    for name, reason in contrary.items():
        to.lose(path, name, reason)
    return [left for each in theirs if (left := {k: v for k, v in each.items() if k not in contrary})]


def _are_named(items: Any) -> bool:
    return (
        isinstance(items, list)
        and bool(items)
        and all(isinstance(each, Mapping) and "Name" in each for each in items)
    )


def _named(theirs: list[Any], ours: list[Any], path: str, to: Translation) -> Iterator[dict[str, Any]]:
    known = {each.get("Name"): each for each in ours if isinstance(each, Mapping)}
    for item in theirs:
        at = f"{path}[{item['Name']}]"
        if _is_carried(at, to):
            continue
        left = _mapping({k: v for k, v in item.items() if k != "Name"}, known.get(item["Name"], {}), at, to)
        if left:
            yield {"Name": item["Name"], **left}


def _is_carried(path: str, to: Translation) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in to.carried)


def lose_what_differs(theirs: Config, rendered: Config, to: Translation) -> None:
    """Mark keys as lost that the final config has with another value, or lacks."""
    named = {each.path for each in to.lost if each.path}
    groups = {path: node["Networking"].get("SecurityGroups", []) for path, node in nodes_of(rendered)}
    for path, old, new in differences(theirs, rendered):
        if old is None or any(path.startswith(each) for each in named):
            continue
        if _are_carried(path, old, new, to):
            if not (new is None or _is_sample(new) or any(said.startswith(path) for said in to.replaced)):
                to.lose(path, old, f"rendered as {shown(new)}")
            continue
        if any(f".{key}" in path for key in _ADDED_TO):
            action = path.rpartition(".")[2]
            if action in _ADDED_TO and all(each in scripts_of(new) for each in scripts_of(old)):
                continue
            if action not in _ADDED_TO:
                continue  # within a script's own keys, which moved into the sequence
        node, _, key = path.rpartition(".Networking.")
        if key == MORE_GROUPS and set(old) <= set(groups[node]):
            continue
        if isinstance(old, list) and isinstance(new, list) and _is_within(old, new, path):
            continue
        to.lose(path, old, "rendered differently")


def _are_carried(path: str, old: Any, new: Any, to: Translation) -> bool:
    """Return True if flags or queues carry a key, or all keys of a mapping that the rendered config lacks."""
    if _is_carried(path, to):
        return True
    inner = differences(old, {}, path) if isinstance(old, Mapping) and old and new is None else ()
    found = [_are_carried(at, value, None, to) for at, value, _ in inner]
    return bool(found) and all(found)


def _is_sample(value: Any) -> bool:
    """Return True for the sample of an id that only a deploy knows."""
    samples = placeholders(image_id=None, bootstrap_budget_s=0)
    parts = (samples, samples.database) if samples.database else (samples,)
    known = {each for part in parts for each in vars(part).values() if isinstance(each, str)}
    return any(each in known for each in (value if isinstance(value, list) else [value]))


def _is_within(old: list[Any], new: list[Any], path: str) -> bool:
    """Return True if a list has all items of another; of settings of slurm.conf each flag counts."""
    if path.endswith(".CustomSlurmSettings"):
        return _flags(old) <= _flags(new)
    return all(each in new for each in old)


def _flags(lines: list[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {
        (name.lower(), each.strip().lower())
        for line in lines
        for name, value in line.items()
        for each in str(value).split(",")
    }
