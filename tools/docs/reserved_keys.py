"""`python -m tools.docs.reserved_keys`: overrides/reserved.tsv, keys of the cluster config that flags set.

Settings that differ in one flag, or queues that differ in one key of their entry in the file of queues, are
rendered: the keys that differ are the flag's. Where several flags change a key, those count whose value is in
the config, else those that change the fewest keys: `capacity` takes a placement group away, but
`placement_group` sets it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ops.importing.comparison import with_storage
from tools.docs.flag_changes import SAMPLES, Sample, ids_of
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.queues import render_queue
from training_cluster.flags.flag import example_of
from training_cluster.flags.messages import literal_choices
from training_cluster.flags.settings import Settings
from training_cluster.overrides.reserved import QUEUES, SLURM, TABLE, Row, general
from training_cluster.pcluster.config_diff import differences
from training_cluster.queues.queue import NodesEntry, QueueEntry, make_queue

_CHOOSES = ("family", "queue_name", "cluster_name", "queues", "overrides", "users", "directory")
"""Flags of names, of files, and of what other flags have by default."""
_UNITED = {"S3Access", "AdditionalIamPolicies", "Tags", "CustomSlurmSettings", "CustomActions"}
"""Keys whose items are added to the app's (overrides/merge.py)."""
_GROUP = "reservation:arn:aws:resource-groups:us-east-1:123456789012:group/mine"
_MORE = (
    Sample(flag="capacity", after={"capacity": _GROUP}),
    Sample(flag="placement_group", after={"placement_group": "mine"}),
    Sample(flag="fsx_gib", after={"fsx_gib": "2400"}),
)
_BASE = {"login_nodes": "1"}
_NETWORK = "203.0.113.0/24"
_STRATEGIES = {"fail": "COMPUTE_FLEET_STOP", "drain": "DRAIN", "stop": "TERMINATE"}
_ELSEWHERE = (
    *(
        Row(path=f"{SLURM}.QueueUpdateStrategy", flag="on_busy", value=value, rendered=strategy)
        for value, strategy in _STRATEGIES.items()
    ),
    *(
        Row(path=f"{node}.Ssh.AllowedIps", flag="ssh_from", value=_NETWORK, rendered=_NETWORK)
        for node in ("HeadNode", "LoginNodes.Pools[login]")
    ),
)
"""Keys that a flag sets outside the cluster config: the provider drains, the nodes' group opens port 22."""
_ITEM = {"name": "a", "instance_types": ["p4d.24xlarge"]}
_KEYS = f"""\
instance_types: [p5.48xlarge]
instance_types: [p4d.24xlarge, p4de.24xlarge]
nodes: 3
min_nodes: 1
efa: false
capacity: spot
capacity: reservation:cr-0123456789abcdef0
capacity: {_GROUP}
allocation_strategy: lowest-price
placement_group: off
placement_group: mine
image: ami-0123456789abcdef1
root_gib: 400
subnet_ids: [subnet-0123456789abcdef0]
exclusive: true
compute_resources: [reservation: cr-0123456789abcdef0]
compute_resources: [{_GROUP.replace(":", ": ", 1)}]
compute_resources: [placement_group: off]
compute_resources: [placement_group: mine]
"""
"""Lines of an entry of the file of queues. Not `partition`, whose keys are the user's."""


def reserved_rows() -> list[Row]:
    """Return a row for each key and each flag that sets it, by key."""
    groups = [*_of_flags(), *([each] for each in _ELSEWHERE), *_of_queues()]
    fewest: dict[tuple[str, bool], int] = {}
    for group in groups:
        for row in group:
            at = (row.path, row.flag == QUEUES)
            fewest[at] = min(len(group), fewest.get(at, len(group)))
    found: dict[tuple[str, str, object], Row] = {}
    for group in groups:
        for row in group:
            if row.is_within or len(group) == fewest[row.path, row.flag == QUEUES]:
                found.setdefault((row.path, row.flag, row.is_within or row.value), row)
    return sorted(found.values(), key=lambda row: (row.path, row.flag == QUEUES))


def _of_flags() -> Iterator[list[Row]]:
    sampled = {each.flag for each in SAMPLES}
    examples = [
        Sample(flag=name, after={name: str(value)})
        for name, info in Settings.model_fields.items()
        for value in (*literal_choices(info.annotation), example_of(info))
        if name not in {*sampled, *_CHOOSES}
    ]
    for each in (*SAMPLES, *_MORE, *examples):
        if each.flag not in _CHOOSES:
            both = [Settings.model_validate(_BASE | dict(flags)) for flags in (each.before, each.after)]
            old, new = (_rendered(one) for one in both)
            was, value = (getattr(one, each.flag) for one in both)
            yield list(_rows(each.flag, value, old, new))
            yield list(_rows(each.flag, was, new, old))


def _of_queues() -> Iterator[list[Row]]:
    for line in _KEYS.splitlines():
        keys = yaml.safe_load(line)
        (item,) = keys.pop("compute_resources", [{}])
        item |= {key: keys.pop(key) for key in NodesEntry.model_fields if key in keys}
        yield list(_rows(QUEUES, line, _with_queue({}, {}), _with_queue(keys, item)))


def _rendered(settings: Settings) -> Mapping[str, Any]:
    """Render settings with the keys of new file systems, also where flags name existing ones."""
    config = render_cluster_config(settings=settings, ids=ids_of(settings))
    return with_storage(config, settings.model_copy(update={"fsx_id": None, "efs_id": None}))


def _with_queue(keys: Mapping[str, Any], item: Mapping[str, Any]) -> Mapping[str, Any]:
    ids = ids_of(Settings())
    queue = make_queue("gpu", QueueEntry.model_validate({**keys, "compute_resources": [{**_ITEM, **item}]}))
    return {"Scheduling": {"SlurmQueues": [render_queue(queue, cluster_name="training", ids=ids)]}}


def _rows(flag: str, value: object, before: Any, after: Any) -> Iterator[Row]:
    for path, new in _leaves(before, after) if value is not None else ():
        if not _UNITED & {*re.split(r"[.\[]", path)}:
            yield Row(path=general(path), flag=flag, value=str(value), rendered=new)


def _leaves(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys that differ, without the keys of items that only one of the configs has."""
    for at, old, new in differences(before, after, path):
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            yield from () if at.endswith("]") else _leaves(old or {}, new or {}, at)
        elif not any(isinstance(each, list) and "Name" in each[0] for each in (old, new)):
            yield at, new


def main() -> None:
    """Write the table."""
    rows = ((each.path, each.flag, each.value, json.dumps(each.rendered)) for each in reserved_rows())
    head = "# Written by python -m tools.docs.reserved_keys\n"
    TABLE.write_text(head + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
