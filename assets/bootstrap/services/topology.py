"""Tells Slurm where in EC2's network the nodes are, by the plugin topology/tree.

    python3 topology.py CLUSTER REGION    asks EC2 about new nodes, and lets Slurm read the tree again
    python3 topology.py                   writes the file from what is known, before slurmctld starts

Called by: the timer training-cluster-topology (steps/85-start-timers.sh), every minute, and before each start
of slurmctld (steps/79-apply-topology.sh), as root, on the head node. Safe to run again. Environment: PATH
with Slurm's programs and aws; TRAINING_ROOT, SLURM_CONF. Python 3.9 and later, standard library only.

ParallelCluster's update removes topology.conf when queues change, if it made none itself (its cookbook,
block_topology), and slurmctld does not start without the file: so it is written before each start. A topology
that ParallelCluster or the overrides set stays theirs, and ours is taken out. The plugin is set once EC2
gives a place, so types without one (the EC2 guide, "Prerequisites for Amazon EC2 topology") keep Slurm's
default.

Every node of slurm.conf is in one tree, since Slurm gives a job no nodes without a common switch. A node that
is off stays where it last was, so only a new place makes Slurm read the file again. All daemons read their
settings anew then, and jobs continue; at most every EVERY_S. Jobs read the file at once, since ranks follow
its order (assets/training/nodes.sh).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EVERY_S, TIMEOUT_S, RECONFIGURE_S = 600, 60, 300
ROOT = Path(os.environ.get("TRAINING_ROOT") or "/")
CONF = Path(os.environ.get("SLURM_CONF") or ROOT / "opt/slurm/etc/slurm.conf")
FILE = CONF.with_name("topology.conf")
STATE = ROOT / "var/lib/training-cluster/topology.json"
PLUGIN = "TopologyPlugin=topology/tree"
TOP, NOWHERE = "ec2", "not-placed"
_LINE = re.compile(r"SwitchName=([\w.-]{1,64}) (Nodes|Switches)=([\w.,-]+)")
Place = tuple[str, ...]


def output_of(*command: str, timeout: int = TIMEOUT_S) -> str:
    """Return what a program prints. Raises OSError or subprocess.SubprocessError if it fails."""
    done = subprocess.run(command, check=True, timeout=timeout, stdout=subprocess.PIPE, text=True)
    return done.stdout


def settings(path: Path = CONF) -> Iterator[tuple[Path, str]]:
    """Yield the lines of slurm.conf and of the files that it includes, each with its file."""
    for line in path.read_text().splitlines():
        setting = line.partition("#")[0].strip()
        if included := re.fullmatch(r"include\s+(\S+)", setting, re.IGNORECASE):
            yield from settings(CONF.parent / included[1])
        elif setting:
            yield path, setting


def node_names() -> list[str]:
    """Return the nodes of slurm.conf in its order, which slurmctld need not run for."""
    found = [re.match(r"NodeName=(\S+)", line, re.IGNORECASE) for _, line in settings()]
    given = [each[1] for each in found if each and each[1].upper() != "DEFAULT"]
    return output_of("scontrol", "show", "hostnames", ",".join(given)).split() if given else []


def is_others() -> bool:
    """Return True if ParallelCluster or the user has set a topology."""
    plugins = [each for each in settings() if each[1].lower().startswith("topologyplugin")]
    return CONF.with_name("topology.yaml").exists() or any(each != (CONF, PLUGIN) for each in plugins)


def is_set() -> bool:
    """Return True if slurm.conf has our plugin."""
    return PLUGIN in CONF.read_text().splitlines()


def read_state() -> dict[str, Any]:
    """Return places by node, the tree that slurmctld has, one that it has not taken, and the last try."""
    state: dict[str, Any] = {"nodes": {}, "loaded": "", "refused": "", "at": 0}
    with contextlib.suppress(OSError, ValueError):
        state |= json.loads(STATE.read_text())
    return state


def addresses() -> dict[str, tuple[str, bool]]:
    """Return the address of each node that runs or starts, and True if its slurmd has registered, by name."""
    said = output_of("sinfo", "--noheader", "--all", "--Node", "--format=%N %o %T")
    rows = (line.split() for line in said.splitlines())
    # A node without an instance has its name as address, and ~ or % at the end of its state.
    return {
        name: (address, not state.endswith("#"))
        for name, address, state in rows
        if address != name and not state.endswith(("~", "%"))
    }


def places(cluster: str, region: str) -> dict[str, list[str]]:
    """Return EC2's network nodes of each instance, the farthest first, by the instance's address."""
    aws = ("--region", region, "--output", "json")
    instances = output_of(
        *("aws", "ec2", "describe-instances", *aws, "--filters"),
        *(
            f"Name=tag:parallelcluster:cluster-name,Values={cluster}",
            "Name=instance-state-name,Values=running",
        ),
        *("--query", "Reservations[].Instances[].[InstanceId,PrivateIpAddress]"),
    )
    # All of the account: with ids the call takes 100 instances at most.
    topology = output_of(
        *("aws", "ec2", "describe-instance-topology", *aws, "--page-size", "100"),
        *("--query", "Instances[].[InstanceId,NetworkNodes]"),
    )
    found = dict(json.loads(topology))
    return {address: found.get(each) or [] for each, address in json.loads(instances)}


def render(names: list[str], known: dict[str, Any]) -> str:
    """Return topology.conf, with leaves in the tree's order. Raises ValueError if it would be no tree."""
    nodes: dict[Place, list[str]] = {}
    for name in names:
        nodes.setdefault(tuple(known.get(name, {}).get("place", ())), []).append(name)
    above = {place[:depth] for place in nodes for depth in range(len(place))} | {()}
    # A switch has nodes or switches, and instance types differ in the number of their network nodes.
    for place in above & {*nodes}:
        nodes[(*place, f"{place[-1]}.nodes" if place else NOWHERE)] = nodes.pop(place)
    order = sorted(nodes, key=lambda place: (place == (NOWHERE,), place))
    lines = [f"SwitchName={place[-1]} Nodes={','.join(nodes[place])}" for place in order]
    for switch in sorted(above, key=lambda place: (-len(place), place)):
        below = dict.fromkeys(each[len(switch)] for each in order if each[: len(switch)] == switch)
        lines.append(f"SwitchName={switch[-1] if switch else TOP} Switches={','.join(below)}")
    _check(lines, names)
    return "".join(f"{line}\n" for line in lines)


def _check(lines: list[str], names: list[str]) -> None:
    """Raise ValueError for what ends slurmctld or leaves nodes out.

    From Slurm 25.11, src/plugins/topology/tree/switch_record.c: switch_record_validate, _parse_switches.
    """
    rows = [each.groups() for each in map(_LINE.fullmatch, lines) if each]
    switches = [name for name, _, _ in rows]
    below = [each for _, kind, given in rows if kind == "Switches" for each in given.split(",")]
    nodes = [each for _, kind, given in rows if kind == "Nodes" for each in given.split(",")]
    # Each switch but the top is below exactly one other, and each node below one.
    if len({*switches}) != len(lines) or sorted([*below, TOP]) != sorted(switches):
        raise ValueError(f"not a tree: {', '.join(lines)[:300]}")
    if sorted(nodes) != sorted(names):
        raise ValueError("a node is in no leaf, or in two")


def put(path: Path, text: str) -> None:
    """Write a file that every user may read, in one rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(path)


def unset() -> None:
    """Take our plugin out of slurm.conf, of whose values Slurm takes the last."""
    if is_set():
        put(CONF, "".join(f"{line}\n" for line in CONF.read_text().splitlines() if line != PLUGIN))


def restore() -> None:
    """Write the file before slurmctld starts, with all nodes that slurm.conf has now."""
    if is_others():
        unset()
    elif is_set():
        names, state = node_names(), read_state()
        try:
            text = render(names, state["nodes"])
        except ValueError:
            text = state["refused"]
        put(FILE, render(names, {}) if text == state["refused"] else text)


def learn(known: dict[str, Any], cluster: str, region: str) -> None:
    """Add the places of nodes with a new address to those known."""
    new = {
        name: (address, is_up)
        for name, (address, is_up) in addresses().items()
        if known.get(name, {}).get("address") != address
    }
    found = places(cluster, region) if new else {}
    for name, (address, is_up) in sorted(new.items()):
        place = found.get(address, [])
        if place or is_up:  # EC2 gives no place before an instance runs
            print(f"{name} ({address}): {' '.join(place) or 'EC2 gives no place'}")
            known[name] = {"address": address, "place": place}


def load(text: str, former: str) -> bool:
    """Let Slurm read its settings again; return False, with the former tree and plugin, if it refuses."""
    was_set = is_set()
    put(FILE, text)
    if not was_set:
        put(CONF, f"{CONF.read_text().rstrip()}\n{PLUGIN}\n")
    try:
        output_of("scontrol", "reconfigure", timeout=RECONFIGURE_S)
    except (OSError, subprocess.SubprocessError) as error:
        # slurmctld continues with what it has read before (controller.c, _try_to_reconfig).
        print(f"slurmctld does not take the tree: {error}", file=sys.stderr)
        if not was_set:
            unset()
        names = node_names()  # an update of the cluster, which restarts slurmctld, may have added some
        try:
            _check(former.splitlines(), names)
        except ValueError:
            former = render(names, {})
        put(FILE, former)
        return False
    print(f"slurmctld has read the tree: {text.count(' Nodes=')} leaves")
    return True


def update(cluster: str, region: str) -> None:
    """Ask EC2 about new nodes, and let Slurm read the tree if it has changed. Raises ValueError as render."""
    if is_others():
        unset()
        return
    state, names = read_state(), node_names()
    state["nodes"] = {name: each for name, each in state["nodes"].items() if name in names}
    learn(state["nodes"], cluster, region)
    if any(each["place"] for each in state["nodes"].values()):
        text = render(names, state["nodes"])
        if text != state["refused"] and not (FILE.exists() and FILE.read_text() == text):
            put(FILE, text)
        is_due = text != state["loaded"] or state["refused"] or not is_set()
        if is_due and not 0 <= time.time() - state["at"] < EVERY_S:
            state |= {"at": time.time(), "refused": text}
            put(STATE, json.dumps(state))  # before, since systemd may end this run
            if load(text, state["loaded"]):
                state |= {"loaded": text, "refused": ""}
    put(STATE, json.dumps(state))


def main(*arguments: str) -> None:
    """Run one of the two ways; not while bootstrap.sh or another run changes slurm.conf."""
    if not arguments:
        restore()
        return
    lock = ROOT / "run/training-cluster.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            update(*arguments)
        except ValueError as error:
            print(f"the tree stays as it is: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
