"""Applies ParallelCluster's own update policies to pairs of cluster configs, in .venv-pcluster.

Called by: ops/pcluster/dry_run.py, for update_policies.py.

Standard input: a JSON list of {"before": config, "after": config}.
Standard output: for each pair one object with the keys whose change is refused in each state of the fleet, as
{"running": [...], "drained": [...], "stopped": [...]}. `drained` is running with QueueUpdateStrategy: DRAIN.
The login nodes of a config run in every state, since stopping the fleet does not stop them.
"""

import json
import os
import sys
from copy import deepcopy
from typing import Any

from pcluster.config.config_patch import ConfigPatch

Config = dict[str, Any]


class _Cluster:
    """The methods of a cluster that the policies call."""

    name = stack_name = "any"

    def __init__(self, *, runs: bool, has_login_nodes: bool) -> None:
        self._runs, self._has_login_nodes = runs, has_login_nodes

    def has_running_capacity(self) -> bool:
        return self._runs

    def has_running_login_nodes(self, pool_name: str | None = None) -> bool:  # noqa: ARG002
        return self._has_login_nodes


def refused_keys(before: Config, after: Config, *, runs: bool) -> list[str]:
    """Return the changes that the library refuses, as paths of the config."""
    patch = ConfigPatch(_Cluster(runs=runs, has_login_nodes="LoginNodes" in before), before, after)
    try:
        _, rows = patch.check()
    except AttributeError:  # raised when a shared storage itself changes, such as its MountDir
        return [ConfigPatch.build_config_param_path(each.path, each.key) for each in patch.changes]
    paths, keys, checks = (rows[0].index(each) for each in ("param_path", "parameter", "check"))
    return [
        ConfigPatch.build_config_param_path(row[paths], row[keys])
        for row in rows[1:]
        if row[checks] != "SUCCEEDED"
    ]


def _with_drain(config: Config) -> Config:
    changed = deepcopy(config)
    changed["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = "DRAIN"
    return changed


def _answer(before: Config, after: Config) -> dict[str, list[str]]:
    return {
        "running": refused_keys(before, after, runs=True),
        "drained": refused_keys(before, _with_drain(after), runs=True),
        "stopped": refused_keys(before, after, runs=False),
    }


if __name__ == "__main__":
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"  # one policy compares the region with isolated ones
    json.dump([_answer(pair["before"], pair["after"]) for pair in json.load(sys.stdin)], sys.stdout)
