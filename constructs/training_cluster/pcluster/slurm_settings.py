"""Check of settings for slurm.conf: slurmctld does not start with a key that it does not know.

ParallelCluster checks only that a setting is none of its own (slurm_settings_validator.py).
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from training_cluster.overrides.merge import scripts_of
from training_cluster.problems import did_you_mean

Config = Mapping[str, Any]

KEYS_FILE = Path(__file__).with_name("slurm_keys.json")
SLURM_CONF = "slurm.conf"
"""Name of the keys that begin a line; others follow one of these, such as NodeName, on its line."""
_FOLDER = "/opt/slurm/etc"
_FILES = {
    "topologyplugin": {"topology/tree": "topology.conf", "topology/block": "topology.conf"},
    "jobsubmitplugins": {"job_submit/lua": "job_submit.lua"},
    "clifilterplugins": {"cli_filter/lua": "cli_filter.lua"},
    "jobcomptype": {"jobcomp/lua": "jobcomp.lua"},
    "burstbuffertype": {"burst_buffer/lua": "burst_buffer.lua"},
    "nodefeaturesplugins": {"node_features/helpers": "helpers.conf"},
    "jobcontainertype": {"job_container/tmpfs": "job_container.conf"},
    "namespacetype": {"namespace/tmpfs": "job_container.conf", "namespace/linux": "namespace.yaml"},
}
"""Plugins by setting that end slurmctld, slurmd or sbatch where their file is missing.

From Slurm 25.11: src/interfaces/topology.c, and what calls get_extra_conf_path in src/plugins/.
"""


def slurm_problems(config: Config) -> Iterator[str]:
    """Yield a sentence for each setting of a rendered config with which Slurm does not start."""
    scheduling, level = config["Scheduling"], "CustomSlurmSettings"
    path = f"Scheduling.SlurmSettings.{level}"
    actions = config["HeadNode"].get("CustomActions", {})
    # An existing cluster takes no OnNodeStart. OnNodeUpdated has one script of the app's, then the user's.
    brings_files = "OnNodeStart" in actions or len(scripts_of(actions.get("OnNodeUpdated"))) > 1
    for line in scheduling.get("SlurmSettings", {}).get(level, []):
        given = {str(key).lower() for key in line}  # ParallelCluster writes a key such as NodeName first
        kind = next((each for each in _tables() if each.lower() in given), SLURM_CONF)
        yield from _unknown(line, kind, path)
        if not brings_files:
            yield from _without_file(line, path)
    for queue in scheduling["SlurmQueues"]:
        at = f"Scheduling.SlurmQueues[{queue['Name']}]"
        yield from _unknown(queue.get(level, {}), "PartitionName", f"{at}.{level}")
        for each in queue["ComputeResources"]:
            yield from _unknown(
                each.get(level, {}), "NodeName", f"{at}.ComputeResources[{each['Name']}].{level}"
            )


def _unknown(settings: Config, kind: str, path: str) -> Iterator[str]:
    """Yield a sentence for each key that Slurm does not know; case makes no difference to it."""
    known = [*_tables()[kind], *([] if kind == SLURM_CONF else [kind])]
    lower = {each.lower() for each in known}
    where = kind if kind == SLURM_CONF else f"a line of {kind}"
    for key in settings:
        if str(key).lower() not in lower:
            yield (
                f"{path}.{key}: Slurm {_release()} has no such key in {where}, and slurmctld does not start "
                f"with it.{did_you_mean(str(key), known)}"
            )


def _without_file(line: Config, path: str) -> Iterator[str]:
    for key, value in line.items():
        files = _FILES.get(str(key).lower(), {})
        given = {each.strip().lower().rpartition("/")[2] for each in str(value).split(",")}
        for plugin, file in files.items():
            if plugin.rpartition("/")[2] in given:
                yield (
                    f"{path}.{key}: {plugin} does not start without {_FOLDER}/{file}\n"
                    "    type: HeadNode.CustomActions.OnNodeStart with a script that writes this file; for "
                    "an existing cluster OnNodeUpdated, one deploy earlier (docs/overrides.md)"
                )


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(KEYS_FILE.read_text(encoding="utf-8"))
    return content


def _tables() -> dict[str, list[str]]:
    tables: dict[str, list[str]] = _content()["keys"]
    return tables


def _release() -> str:
    """Return Slurm's release by its tag: slurm-25-11-7-1 is of 25.11."""
    return ".".join(_content()["tag"].split("-")[1:3])
