"""Merge of a file of overrides into a rendered cluster config. Pure."""

from collections.abc import Mapping
from typing import Any

from training_cluster.problems import ConfigurationError, did_you_mean

_ADDED_TO = ("OnNodeConfigured", "OnNodeUpdated")
"""Custom actions whose scripts run after ours."""
_RIGHTS = (".S3Access", ".AdditionalIamPolicies")
"""Lists that are added to ours, which nodes need."""
_OURS = ("Scheduling.SlurmQueues", "ComputeResources")
"""Lists whose items are made by flags alone."""
_POOLS = "LoginNodes.Pools"
"""List whose new items start as a copy of the rendered item, with its subnet, group, rights and scripts."""
_FLAGS = "prologflags"
"""Setting of slurm.conf whose words are added to ours, which let a job wait for its nodes' health checks."""


def merge(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the overrides: mappings are merged, named items by name, null removes a key.

    Raises:
        ConfigurationError: a queue or a compute resource that the cluster does not have.
    """
    return _mapping(config, overrides, "")


def _mapping(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> dict[str, Any]:
    merged = dict(ours)
    for key, value in theirs.items():
        at = f"{path}.{key}" if path else key
        if value is None:
            merged.pop(key, None)
        elif key in _ADDED_TO and key in ours:
            merged[key] = {"Sequence": [*scripts_of(ours[key]), *scripts_of(value)]}
        else:
            merged[key] = _value(ours.get(key), value, at)
    return merged


def _value(ours: Any, theirs: Any, path: str) -> Any:
    if path == _POOLS and not ours:
        raise ConfigurationError(f"overrides: {path}: the first pool comes from -c login_nodes=1")
    if isinstance(theirs, Mapping):
        return _mapping(ours if isinstance(ours, Mapping) else {}, theirs, path)
    if isinstance(ours, list) and isinstance(theirs, list):
        if path.endswith(_RIGHTS):  # two items may have the same bucket, with other keys
            return [*ours, *(each for each in theirs if each not in ours)]
        if path.endswith(".CustomSlurmSettings"):
            return _slurm_settings(ours, theirs)
        if ours and _are_named(ours):
            if not _are_named(theirs):
                raise ConfigurationError(f"overrides: {path}: each item needs its Name, to be merged by it")
            return _named(ours, theirs, path)
    return theirs


def _named(ours: list[Any], theirs: list[Any], path: str) -> list[Any]:
    merged = {str(each["Name"]): each for each in ours}
    for item in theirs:
        name = str(item["Name"])
        if name not in merged and path.endswith(_OURS):
            known = ", ".join(merged)
            raise ConfigurationError(
                f"overrides: {path}[{name}]: this cluster has no item of this name."
                f"{did_you_mean(name, merged)}\n    allowed: {known}"
            )
        begun = {**ours[0], "Name": name} if path == _POOLS else {}
        merged[name] = _mapping(merged.get(name, begun), item, f"{path}[{name}]")
    return list(merged.values())


def _slurm_settings(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Merge lists of lines for slurm.conf: an override replaces the rendered line of the same name.

    Raises:
        ConfigurationError: PrologFlags that contradict the rendered ones, or remove them.
    """
    given = {str(name).lower() for each in theirs if isinstance(each, Mapping) for name in each}
    kept = [{name: value for name, value in each.items() if name.lower() not in given} for each in ours]
    flags = [str(value) for each in ours for name, value in each.items() if name.lower() == _FLAGS]
    added = [
        {
            name: _flags(*flags, value) if str(name).lower() == _FLAGS else value
            for name, value in each.items()
            if value is not None or str(name).lower() == _FLAGS
        }
        if isinstance(each, Mapping)
        else each
        for each in theirs
    ]
    return [each for each in (*kept, *added) if each]


def _flags(*values: Any) -> str:
    words = {word.strip().lower(): word.strip() for word in ",".join(map(str, values)).split(",")}
    if "nohold" in words or None in values:
        raise ConfigurationError(
            "overrides: PrologFlags: NoHold, or null, starts jobs before the health checks of their nodes "
            f"have passed\n    remove it; the app sets {','.join(map(str, values[:-1]))}"
        )
    return ",".join(words.values())


def _are_named(items: list[Any]) -> bool:
    return all(isinstance(each, Mapping) and "Name" in each for each in items)


def scripts_of(action: Any) -> list[Any]:
    """Return the scripts of a custom action, which has one or a sequence of them."""
    if isinstance(action, Mapping) and "Sequence" in action:
        sequence = action["Sequence"]
        return list(sequence) if isinstance(sequence, list) else [sequence]
    return [action]
