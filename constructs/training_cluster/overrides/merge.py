"""Merge of a file of overrides into a rendered cluster config. Pure."""

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from training_cluster.problems import ConfigurationError, did_you_mean

SLURM_KEYS = Path(__file__).with_name("slurm_keys.json")
"""Keys of slurm.conf, which tools/slurm_keys.py finds in Slurm's source and manual."""
SLURM_CONF = "slurm.conf"
"""Name of the keys that begin a line; others follow one of these, such as NodeName, on its line."""
ADDED_TO = ("OnNodeConfigured", "OnNodeUpdated")
"""Custom actions whose scripts run after ours."""
_RIGHTS = (".S3Access", ".AdditionalIamPolicies")
"""Lists that are added to ours, which nodes need; two items may have the same bucket, with other keys."""
SETTINGS = "CustomSlurmSettings"
"""Settings of slurm.conf: a list of lines of the cluster, one line of a queue or of a compute resource."""
_WITH_NAMES = ("Tags", SETTINGS)
"""Tags, and settings of slurm.conf: what is not in ours is added."""
UNITED = (*ADDED_TO, *_RIGHTS, *_WITH_NAMES)
"""Ends of the paths of lists and custom actions whose items are added to ours."""
_OURS = ("Scheduling.SlurmQueues", "ComputeResources")
"""Lists whose items are made by flags alone."""
_POOLS = "LoginNodes.Pools"
"""List whose new items start as a copy of the rendered item, with its subnet, group, rights and scripts."""


def merge(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the overrides: mappings are merged, named items by name, null removes a key.

    Raises:
        ConfigurationError: a queue or a compute resource that the cluster does not have; a tag or a setting
            of slurm.conf that the app sets otherwise.
    """
    return _mapping(config, overrides, "")


@cache
def slurm_keys() -> dict[str, Any]:
    """Return the content of slurm_keys.json."""
    content: dict[str, Any] = json.loads(SLURM_KEYS.read_text(encoding="utf-8"))
    return content


def _mapping(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> dict[str, Any]:
    merged = dict(ours)
    for key, value in theirs.items():
        at = f"{path}.{key}" if path else key
        if value is None:
            merged.pop(key, None)
        elif key in ADDED_TO and key in ours:
            merged[key] = {"Sequence": [*scripts_of(ours[key]), *scripts_of(value)]}
        else:
            merged[key] = _value(ours.get(key), value, at)
    return merged


def _value(ours: Any, theirs: Any, path: str) -> Any:
    if path == _POOLS and not ours:
        raise ConfigurationError(f"overrides: {path}: the first pool comes from -c login_nodes=1")
    _check_shape(ours, theirs, path)
    if ours and path.endswith(_WITH_NAMES):
        return _united(ours, theirs, path)
    if isinstance(theirs, Mapping):
        return _mapping(ours if isinstance(ours, Mapping) else {}, theirs, path)
    if isinstance(ours, list):
        if path.endswith(_RIGHTS):
            return [*ours, *(each for each in theirs if each not in ours)]
        if are_named(ours):
            if not are_named(theirs):
                raise ConfigurationError(f"overrides: {path}: each item needs its Name, to be merged by it")
            return _named(ours, theirs, path)
    return theirs


def _check_shape(ours: Any, theirs: Any, path: str) -> None:
    for kind, words in ((Mapping, "keys with values"), (list, "a list")):
        if isinstance(ours, kind) and not isinstance(theirs, kind):
            raise ConfigurationError(f"overrides: {path}: expected {words}, found {theirs}")
    for each in theirs if isinstance(ours, list) and ours else ():
        _check_shape(ours[0], each, path)


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


def contrary_items(ours: Any, theirs: Any) -> dict[str, tuple[list[str], str]]:
    """Return the words of items that cannot be set, and why, by name of the tag or setting of slurm.conf.

    These are the words of a list that ours has otherwise, else all of the value.
    """
    mine = _by_name(ours)
    return {
        name: (words, f"the app sets {mine[name.lower()]}")
        for line in _lines(theirs)
        for name, value in line.items()
        if name.lower() in mine and (words := _joined(name, mine[name.lower()], value)[1])
    }


def without_words(value: Any, words: Collection[str]) -> str:
    """Return a list of words without some of them."""
    return ",".join(each for each in _words(value) if each not in words)


def _united(ours: Any, theirs: Any, path: str) -> Any:
    if contrary := contrary_items(ours, theirs):
        items = [f"{name}: {','.join(words)}: {why}; remove it" for name, (words, why) in contrary.items()]
        lines = "\n    ".join([f"overrides: {path}: items that are not to be changed:", *items])
        raise ConfigurationError(lines)
    mine, given = _by_name(ours), _by_name(theirs)
    kept = [
        {name: _joined(name, value, given.get(name.lower(), value))[0] for name, value in line.items()}
        for line in _lines(ours)
    ]
    added = [
        {name: value for name, value in line.items() if name.lower() not in mine and value is not None}
        for line in _lines(theirs)
    ]
    united = [*kept, *filter(None, added)]
    if isinstance(ours, Mapping):
        return {name: value for line in united for name, value in line.items()}
    if "Key" in ours[0]:
        return [{"Key": name, "Value": value} for line in united for name, value in line.items()]
    return united


def _joined(name: str, ours: Any, theirs: Any) -> tuple[Any, list[str]]:
    """Return ours with the words of theirs, where Slurm reads a list of words, and those that are contrary.

    A word of theirs that begins with "no" takes others away: PrologFlags=NoHold starts jobs before the health
    checks of their nodes have passed. Of two values of one word, Slurm would take ours.
    """
    if str(ours) == str(theirs):
        return ours, []
    lists = (each.lower() for each in slurm_keys()["manual"]["lists"][SLURM_CONF])
    if theirs is None or name.lower() not in lists:
        return ours, ["null" if theirs is None else str(theirs)]
    mine = {each.lower(): each for each in _words(ours)}
    added = {each.lower(): each for each in _words(theirs) if each.lower() not in mine}
    set_ = {each.partition("=")[0] for each in mine}
    contrary = [
        word
        for key, word in added.items()
        # no_env_cache and the like are names.
        if key.partition("=")[0] in set_ or (key.startswith("no") and not key.startswith(("node", "no_")))
    ]
    return ",".join((mine | added).values()), contrary


def _words(value: Any) -> list[str]:
    return [each.strip() for each in str(value).split(",")]


def _by_name(items: Any) -> dict[str, Any]:
    """Return the values of tags or settings by name in lower case: Slurm and IAM know no other."""
    return {name.lower(): value for line in _lines(items) for name, value in line.items()}


def _lines(items: Any) -> list[dict[str, Any]]:
    """Return tags, or settings of slurm.conf on any level, as lines of `NAME: VALUE`."""
    return [
        {str(key): value for key, value in pairs}
        for each in ([items] if isinstance(items, Mapping) else items)
        for pairs in ([(each["Key"], each.get("Value"))] if "Key" in each else each.items(),)
    ]


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and text of each value of a config that is text; items have their names or numbers."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            name = inner.get("Name", number) if isinstance(inner, Mapping) else number
            yield from texts(inner, f"{path}[{name}]")
    elif isinstance(value, str):
        yield path, value


def are_named(items: Any) -> bool:
    """Return True for a list of mappings that all have a Name, at least one."""
    return (
        isinstance(items, list)
        and bool(items)
        and all(isinstance(each, Mapping) and "Name" in each for each in items)
    )


def scripts_of(action: Any) -> list[Any]:
    """Return the scripts of a custom action, which has one or a sequence of them."""
    if isinstance(action, Mapping) and "Sequence" in action:
        sequence = action["Sequence"]
        return list(sequence) if isinstance(sequence, list) else [sequence]
    return [action]
