"""Keys of the cluster config that a file of overrides cannot set, since a flag or the app does.

reserved.tsv has the keys that flags set. The reasons of all others are here.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from training_cluster.flags.messages import allowed_values
from training_cluster.flags.network import is_wide
from training_cluster.flags.settings import Settings
from training_cluster.overrides.merge import SETTINGS, UNITED, are_named

TABLE = Path(__file__).with_name("reserved.tsv")
"""Keys that flags set, which tools/docs/reserved_keys.py finds by rendering."""
QUEUES = "queues"
"""Flag of the file of queues; its values in the table are lines of a queue's entry there."""

_QUEUE, _POOL = "Scheduling.SlurmQueues[]", "LoginNodes.Pools[]"
_NODES = ("HeadNode", _QUEUE, _POOL)
_ADDED = "not to be removed: items of a list are added to the app's"
_SETUP = "not to be removed: nodes need our scripts, and yours run after them"
SLURM = "Scheduling.SlurmSettings"
_BY_FLAG = "a flag sets it: -c "
_MOUNT = f"{_BY_FLAG}fsx_id, efs_id, home, or for new storage fsx_type, fsx_gib (docs/flags.md, Storage)"
_OF_NODES = {
    "Networking.SecurityGroups": f"{_BY_FLAG}security_group_id; or set AdditionalSecurityGroups",
    "Iam.S3Access": _ADDED,
    "Iam.AdditionalIamPolicies": _ADDED,
    "Iam.InstanceProfile": "give its role, as InstanceRole: our policy is attached to it",
    "CustomActions.OnNodeConfigured": _SETUP,
    "CustomActions.OnNodeUpdated": _SETUP,
}
FIXED: Mapping[str, str] = {
    "Region": "the deploy sets it, from AWS_REGION or the AWS profile",
    "Image.CustomAmi": "not for all nodes: -c image of the queues, -c head_image of the head node",
    "Tags": _ADDED,
    "DevSettings.Timeouts": "not to be removed: the time limits of the nodes' steps decide",
    "Scheduling.Scheduler": "not to be set: it is slurm",
    **{f"{level}.{SETTINGS}": _ADDED for level in (SLURM, _QUEUE, f"{_QUEUE}.ComputeResources[]")},
    f"{SLURM}.CustomSlurmSettingsIncludeFile": "not with CustomSlurmSettings, which the app needs: give its "
    "lines there",
    f"{_QUEUE}.Tags": _ADDED,
    f"{_QUEUE}.{SETTINGS}.ExclusiveUser": "set it by `shared` of the queue in the file of -c queues",
    **{f"{node}.{key}": reason for node in _NODES for key, reason in _OF_NODES.items()},
}
"""Keys that are refused for another reason than a flag's value."""
_WHOLE = {
    "DirectoryService": f"{_BY_FLAG}directory=FILE, a file with these keys (docs/how-to/users.md)",
    "SharedStorage[shared]": _MOUNT,
    "SharedStorage[efs]": _MOUNT,
}
"""Keys that are refused with all below them."""
_OPEN = (
    # Keys of an existing file system that ParallelCluster reads, and no flag sets.
    "SharedStorage[efs].EfsSettings.AccessPointId",
    "SharedStorage[efs].EfsSettings.IamAuthorization",
    # A pool may be in a subnet of its own.
    "LoginNodes.Pools[].Networking.SubnetIds",
)
"""Keys of the above, and of flags for all nodes, that overrides set."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A value of a flag, and the value that a key of the cluster config has by it."""

    path: str
    flag: str
    value: str
    rendered: Any
    """None where the flag takes the key away."""

    @property
    def is_within(self) -> bool:
        """True when the key's value is a part of the flag's."""
        return self.rendered is not None and _text(self.rendered) in self.value

    def typed(self, wanted: Any) -> str | None:
        """Return the flag's value by which the key has another value; None if the row does not tell it."""
        if wanted == self.rendered or (wanted is False and self.rendered is None):
            return self.value
        return self.value.replace(_text(self.rendered), _text(wanted)) if self.is_within else None


def flag_for(path: str, value: Any) -> tuple[str, str] | None:
    """Return the first of `flags_for`; None if no value of a flag gives the key its value."""
    return next(flags_for(path, value), None)


def flags_for(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each flag that sets a key, and what to type for a value.

    Of a queue's key it is the flag for the flags' own queue. With the flag `queues` it is the line of the
    queue's entry in the file.
    """
    for row in table().get(general(path), ()):
        text = row.typed(value)
        if text is not None and (row.flag == QUEUES or _takes(row.flag, text)):
            yield row.flag, text


def is_off_without(path: str) -> bool:
    """Return True for a key that a flag takes away: without it, it is false."""
    return any(row.rendered is None for row in table().get(general(path), ()))


def general(path: str) -> str:
    """Return a path without the names of queues and compute resources, and with today's key for Id."""
    path = re.sub(r"\.PlacementGroup\.Id$", ".PlacementGroup.Name", path)
    return re.sub(r"\b(SlurmQueues|ComputeResources)\[[^]]*\]", r"\1[]", path)


def reserved_keys(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each key of a file of overrides that a flag or the app sets."""
    for path, value in _leaves(overrides, ""):
        if reason := _reason(path, value):
            yield f"{path}: {reason}"


def reserved_reason(value: Any, path: str) -> str | None:
    """Return why a value at a path is refused, and what to type instead; None for one that may be set."""
    return next((reason for each in _leaves(value, path) if (reason := _reason(*each))), None)


@cache
def table() -> Mapping[str, list[Row]]:
    """Return the rows of reserved.tsv by key."""
    found: dict[str, list[Row]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        path, flag, value, rendered = line.split("\t")
        row = Row(path=path, flag=flag, value=value, rendered=json.loads(rendered))
        found.setdefault(path, []).append(row)
    return found


def _takes(flag: str, text: str) -> bool:
    try:
        Settings.model_validate({flag: text})
    except ValidationError:
        return False
    return True


def _reason(path: str, value: Any) -> str | None:
    names = (path, general(path), re.sub(r"\[[^]]*\]", "[]", path))
    if {*_OPEN}.intersection(names):
        return None
    lower = {each.lower() for each in names}  # Slurm's own keys have any case
    if fixed := next((FIXED[each] for each in FIXED if each.lower() in lower), None):
        return fixed
    if rows := table().get(general(path)):
        return _instead(rows, path, value)
    if whole := next((_WHOLE[each] for each in _WHOLE if f"{path}.".startswith(f"{each}.")), None):
        return whole
    within = tuple(f"{name}{end}" for name in names for end in ".[")
    if any(key.startswith(within) for key in (*FIXED, *_WHOLE, *table())):
        return "not to be removed or replaced: give its keys, or items with their Name"
    return None


def _instead(rows: list[Row], path: str, value: Any) -> str:
    typed = dict(reversed(list(flags_for(path, value))))
    flags = list(dict.fromkeys(row.flag for row in rows if row.flag != QUEUES))
    keys = {row.value.partition(":")[0] for row in rows if row.flag == QUEUES}
    line = f"`{typed.get(QUEUES) or ' or '.join(sorted(keys))}` of the queue in the file of -c queues"
    if not flags:
        return f"set it by {line}"
    flag = next((each for each in flags if each in typed), None)
    allowed = allowed_values(Settings.model_fields[flags[0]])
    named = shlex.quote(f"{flag}={typed[flag]}") if flag else f"{flags[0]}, which takes {allowed}"
    # Alone it would be refused.
    also = " -c ssh_from_anywhere=yes" if flag == "ssh_from" and is_wide(typed[flag]) else ""
    return f"{_BY_FLAG}{named}{also}" + (f"; or {line}" if keys else "")


def _text(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return ", ".join(map(_text, value.values() if isinstance(value, Mapping) else value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of each key that is set or removed, but of what is added to the app's."""
    if path.endswith(UNITED) and value and not isinstance(value, Mapping):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif are_named(value):
        for item in value:
            rest = {key: inner for key, inner in item.items() if key != "Name"}
            yield from _leaves(rest, f"{path}[{item['Name']}]")
    else:
        yield path, value
