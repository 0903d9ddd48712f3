"""The tree of the network on a head node whose Slurm and `aws` are stand-ins."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ops.asset_code import asset_code
from training_cluster.paths import ASSETS, TRAINING

NODES = ("q-st-p5-1", "q-st-p5-2", "q-st-p5-3", "q-dy-p5-1")
PLACES = {1: ["nn-a", "nn-b", "nn-d"], 2: ["nn-a", "nn-b", "nn-c"], 3: ["nn-a", "nn-b", "nn-d"]}
TREE = """\
SwitchName=nn-c Nodes=q-st-p5-2
SwitchName=nn-d Nodes=q-st-p5-1,q-st-p5-3
SwitchName=not-placed Nodes=q-dy-p5-1
SwitchName=nn-b Switches=nn-c,nn-d
SwitchName=nn-a Switches=nn-b
SwitchName=ec2 Switches=nn-a,not-placed
"""
STUBS = {
    "scontrol": '[[ $1 == show ]] && tr , "\\n" <<<"$3" || { echo reconfigure >>calls; source ./does; }',
    "sinfo": "cat states",
    "aws": 'echo "$2" >>calls; cat "$2"',
}
render = asset_code("bootstrap/services", "topology").topology.render


def flat(*nodes: str) -> str:
    """Return the tree of nodes without places."""
    return f"SwitchName=not-placed Nodes={','.join(nodes)}\nSwitchName=ec2 Switches=not-placed\n"


class HeadNode:
    """A head node in a folder, with three static nodes that run, and a dynamic one that is off."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "opt/slurm/etc/slurm.conf"
        (folder / "bin").mkdir()
        for name, text in STUBS.items():
            (folder / "bin" / name).write_text(f"#!/bin/bash\ncd {folder}; {text}\n")
            (folder / "bin" / name).chmod(0o755)
        (self.conf.parent / "pcluster").mkdir(parents=True)
        self.conf.write_text("ClusterName=x\ninclude parallelcluster.conf\n")
        self.name(*NODES)
        self.place(PLACES)
        self.reconfigure()

    def name(self, *nodes: str) -> None:
        """Let ParallelCluster write these nodes into its files."""
        queue = self.conf.parent / "pcluster" / "queue.conf"
        self.conf.with_name("parallelcluster.conf").write_text(f"include {queue} # a queue\n")
        queue.write_text(f"NodeName=DEFAULT CPUs=1\nNodeName={','.join(nodes)} State=CLOUD\n")

    def place(self, places: Mapping[int, list[str] | None]) -> None:
        """Let these instances run, by the number of their address, and EC2 give their places."""
        states = [f"q-st-p5-{number} 10.0.0.{number} idle\n" for number in places]
        (self.folder / "states").write_text("".join(states) + "q-dy-p5-1 q-dy-p5-1 idle~\n")
        instances = [[f"i-{number}", f"10.0.0.{number}"] for number in places]
        (self.folder / "describe-instances").write_text(json.dumps(instances))
        topology = [["i-of-another", ["nn-z"]], *([f"i-{number}", place] for number, place in places.items())]
        (self.folder / "describe-instance-topology").write_text(json.dumps(topology))

    def reconfigure(self, does: str = "true") -> None:
        """Let slurmctld take what it reads, or do something else."""
        (self.folder / "does").write_text(does)

    def run(self, *arguments: str) -> str:
        """Run the program; return what it says and which calls it makes."""
        (self.folder / "calls").write_text("")
        env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TRAINING_ROOT": str(self.folder)}
        program = ASSETS / "bootstrap" / "services" / "topology.py"
        done = subprocess.run(
            [sys.executable, program, *arguments], env=env, check=True, capture_output=True, text=True
        )
        return done.stdout + done.stderr + (self.folder / "calls").read_text()

    def ask(self, *, later: bool = False) -> str:
        """Run the timer's program, ten minutes later if asked."""
        state = self.folder / "var/lib/training-cluster/topology.json"
        if later:
            state.write_text(json.dumps(json.loads(state.read_text()) | {"at": 0}))
        return self.run("training", "us-east-1")

    @property
    def tree(self) -> str:
        """topology.conf; empty without it."""
        file = self.conf.with_name("topology.conf")
        return file.read_text() if file.exists() else ""


@pytest.fixture
def head(tmp_path: Path) -> HeadNode:
    """A head node that has asked nothing yet."""
    return HeadNode(tmp_path)


def test_a_tree_is_read_once(head: HeadNode) -> None:
    said = head.ask()
    assert (head.tree, head.conf.read_text().splitlines()[-1]) == (TREE, "TopologyPlugin=topology/tree")
    assert "q-st-p5-1 (10.0.0.1): nn-a nn-b nn-d" in said and said.count("reconfigure") == 1
    assert head.ask(later=True) == ""


def test_a_replaced_node_moves_ten_minutes_later(head: HeadNode) -> None:
    head.ask()
    head.place({**PLACES, 1: None})
    (head.folder / "states").write_text("q-st-p5-1 10.0.0.9 idle#\n")
    head.ask()
    assert head.tree == TREE  # EC2 does not place an instance that starts
    head.place({9: ["nn-a", "nn-b", "nn-c"]})
    (head.folder / "states").write_text("q-st-p5-1 10.0.0.9 idle#\n")
    assert "reconfigure" not in head.ask()
    assert "SwitchName=nn-c Nodes=q-st-p5-1,q-st-p5-2" in head.tree  # at once, for ranks
    assert head.ask(later=True).endswith("reconfigure\n")


def test_a_refused_tree_leaves_the_last_one(head: HeadNode) -> None:
    head.reconfigure("false")
    before = head.conf.read_text()
    assert "slurmctld does not take the tree" in head.ask()
    assert head.conf.read_text() == before
    assert head.ask() == ""  # not each minute
    head.reconfigure()
    assert head.ask(later=True).endswith("reconfigure\n")
    assert head.tree == TREE
    head.reconfigure("false")
    head.place({1: ["nn-a", "nn-b", "nn-d"]})
    (head.folder / "states").write_text("q-st-p5-1 10.0.0.1 idle\nq-st-p5-2 10.0.0.9 idle\n")
    (head.folder / "describe-instances").write_text('[["i-1", "10.0.0.9"]]')
    assert "does not take" in head.ask(later=True)
    assert head.tree == TREE
    assert head.ask() == ""
    assert head.tree == TREE
    head.run()
    assert head.tree == flat(*NODES)
    head.place(PLACES)
    head.reconfigure()
    assert head.ask(later=True).endswith("reconfigure\n")  # slurmctld may have started with the flat one
    assert head.tree == TREE


def test_a_refused_tree_keeps_new_nodes(head: HeadNode) -> None:
    head.ask()
    queue, new = head.conf.parent / "pcluster" / "queue.conf", (*NODES, "q-st-p5-9")
    head.reconfigure(f"sed -i s/{NODES[-1]}/{','.join(new[-2:])}/ {queue}; false")
    head.place({**PLACES, 3: ["nn-a", "nn-b", "nn-e"], 4: ["nn-a"]})
    (head.folder / "states").write_text("q-st-p5-3 10.0.0.4 idle\n")
    assert "does not take" in head.ask(later=True)
    assert head.tree == flat(*new)


def test_an_ended_run_waits_as_a_refused_one(head: HeadNode) -> None:
    head.reconfigure("kill -KILL $PPID")
    with pytest.raises(subprocess.CalledProcessError):
        head.ask()
    assert "reconfigure" not in head.ask()
    head.run()
    assert head.tree == flat(*NODES)


def test_types_without_a_place_keep_the_default(head: HeadNode) -> None:
    head.place(dict.fromkeys(PLACES))
    head.ask()
    assert (head.tree, "TopologyPlugin" in head.conf.read_text()) == ("", False)
    assert head.ask() == ""


def test_the_file_is_there_before_slurmctld(head: HeadNode) -> None:
    head.run()
    assert head.tree == ""
    head.ask()
    # ParallelCluster's update with another queue.
    head.conf.with_name("topology.conf").unlink()
    head.name(NODES[0], NODES[3], "q-dy-p5-2")
    head.run()
    assert head.tree == (
        "SwitchName=nn-d Nodes=q-st-p5-1\nSwitchName=not-placed Nodes=q-dy-p5-1,q-dy-p5-2\n"
        "SwitchName=nn-b Switches=nn-d\nSwitchName=nn-a Switches=nn-b\n"
        "SwitchName=ec2 Switches=nn-a,not-placed\n"
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("parallelcluster.conf", "TopologyPlugin=topology/block\n"),
        ("slurm.conf", "topologyplugin=topology/flat\n"),
        ("topology.yaml", ""),
    ],
)
def test_a_topology_of_others_stays(head: HeadNode, file: str, text: str) -> None:
    head.conf.with_name(file).write_text(text)
    for arguments in ((), ("training", "us-east-1")):  # with ours, which Slurm would read last
        before = head.conf.read_text()
        head.conf.write_text(f"{before}TopologyPlugin=topology/tree\n")
        assert head.run(*arguments) == ""
        assert (head.conf.read_text(), head.tree) == (before, "")


def test_a_switch_has_nodes_or_switches() -> None:
    places = {"a": ["x", "y"], "b": ["x", "y", "z"]}
    text = render(["a", "b"], {name: {"place": place} for name, place in places.items()})
    assert text == (
        "SwitchName=y.nodes Nodes=a\nSwitchName=z Nodes=b\n"
        "SwitchName=y Switches=y.nodes,z\nSwitchName=x Switches=y\nSwitchName=ec2 Switches=x\n"
    )


@pytest.mark.parametrize(
    "places",
    [
        {"a": ["x", "z"], "b": ["y", "z"]},  # a switch below two
        {"a": ["x", "y z"], "b": ["x"]},  # no name
        {"a": ["y" * 65], "b": ["x"]},
        {"a": ["ec2"], "b": ["x"]},
    ],
)
def test_what_is_no_tree_is_not_written(places: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="not a tree"):
        render(["a", "b"], {name: {"place": place} for name, place in places.items()})


def test_ranks_follow_the_tree(head: HeadNode) -> None:
    def order(launcher: str) -> list[str]:
        names = "\n".join(["q-st-p5-1", "q-st-p5-2", "q-st-p5-3", "of-another-partition"])
        script = f"source {TRAINING}/nodes.sh; in_tree_order"
        env = {"PATH": os.environ["PATH"], "SLURM_CONF": str(head.conf), "LAUNCHER": launcher}
        said = subprocess.run(
            ["bash", "-euc", script], input=names, env=env, check=True, stdout=subprocess.PIPE, text=True
        )
        return [name[-1] for name in said.stdout.split()]

    assert order("torchrun") == ["1", "2", "3", "n"]  # no tree
    head.ask()
    assert order("torchrun") == ["2", "1", "3", "n"]
    assert order("srun") == ["1", "2", "3", "n"]
