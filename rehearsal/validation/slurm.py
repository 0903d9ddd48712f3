"""A real slurmctld, which starts with the settings for slurm.conf of each config, and ends at once.

Without munge it starts in a twentieth of a second, so each distinct set of settings has a start of its own.
"""

import json
import os
import pwd
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rehearsal.local_slurm.cluster import SYSTEM_PATH
from rehearsal.local_slurm.conf import render_slurm_conf
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.partitions import NodeShape, parse_partitions
from rehearsal.local_slurm.ports import find_ports
from training_cluster.catalog.families import find_instance_type

Config = Mapping[str, Any]
_WITHOUT_MUNGE = "\n# No munged runs here.\nCredType=cred/none\n"
_STARTED = "Running as primary controller"
_TIMEOUT_S = 60


def refused_settings(configs: Iterable[tuple[str, Config]], say: Callable[[str], None]) -> list[str]:
    """Start slurmctld once with each distinct set of settings; return its errors by the configs' names.

    It says what was left out, because the Slurm of this machine cannot have it.
    """
    distinct: dict[str, tuple[str, Config]] = {}
    for name, config in configs:
        scheduling, level = config["Scheduling"], "CustomSlurmSettings"
        settings = [scheduling["SlurmSettings"].get(level)]
        for queue in scheduling["SlurmQueues"]:
            settings += [queue.get(level), *(each.get(level) for each in queue["ComputeResources"])]
        distinct.setdefault(json.dumps(settings), (name, config))
    refused, left_out = [], dict[str, None]()
    for name, config in distinct.values():
        error, lacking = start_with(config)
        left_out |= dict.fromkeys(lacking)
        refused += [f"{name}: {error}"] if error else []
    say(f"slurmctld started with {len(distinct) - len(refused)} of {len(distinct)} distinct sets of settings")
    for each in left_out:
        say(f"left out: {each}")
    return refused


def start_with(config: Config) -> tuple[str | None, list[str]]:
    """Return why slurmctld does not start with a config, or None, and the settings that were left out."""
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:
        conf, left_out = _conf(config, Path(folder))
        for each in ("state", "log", "run"):
            (Path(folder) / each).mkdir()
        file = Path(folder) / "slurm.conf"
        file.write_text(conf, encoding="utf-8")
        return _refusal(file), left_out


def _conf(config: Config, folder: Path) -> tuple[str, list[str]]:
    scheduling = config["Scheduling"]
    types = {
        each["InstanceType"]
        for queue in scheduling["SlurmQueues"]
        for resource in queue["ComputeResources"]
        for each in resource.get("Instances", [resource])
    }
    known = {name: found[1] for name in types if (found := find_instance_type(name))}
    shapes = {name: NodeShape(vcpus=size.vcpus, memory_mib=1024) for name, size in known.items()}
    partitions = parse_partitions(cluster_config=config, shapes=shapes)
    names = [name for partition in partitions for name in partition.node_names]
    layout = Layout(
        root=folder,
        user=pwd.getpwuid(os.getuid()).pw_name,
        host=socket.gethostname().partition(".")[0],
        controller_port=find_ports(1),
        node_ports={name: 1 + i for i, name in enumerate(names)},
    )
    lines = scheduling["SlurmSettings"].get("CustomSlurmSettings", [])
    conf, left_out = render_slurm_conf(partitions=partitions, layout=layout, settings=lines)
    return conf.replace("AuthType=auth/munge", "AuthType=auth/none") + _WITHOUT_MUNGE, left_out


def _refusal(conf: Path) -> str | None:
    """Return slurmctld's errors, or None once it has started."""
    child = subprocess.Popen(
        ["timeout", str(_TIMEOUT_S), "slurmctld", "-D", "-c", "-f", str(conf)],
        env={"PATH": SYSTEM_PATH},
        cwd=conf.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said = []
    try:
        for line in child.stdout or ():
            if _STARTED in line:
                return None
            said.append(line)
        return "".join(each for each in said if "error: " in each or "fatal: " in each) or "".join(said)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
