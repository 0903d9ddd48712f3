"""Timers of a node's bootstrap: metrics, and a check for a missed update."""

import re
import shlex
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.bootstrap_node import Node, be_a_parallelcluster_node

# A systemctl that starts no timer.
NO_TIMERS = "case $* in *--now*) echo 'no systemd here' >&2; exit 1 ;; esac"
METRICS, FOLLOW, HEALTH = "training-cluster-metrics", "training-cluster-follow", "training-cluster-health"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _what_runs(units: Path) -> list[str]:
    (line,) = re.findall("^ExecStart=(.*)$", (units / f"{METRICS}.service").read_text(), re.MULTILINE)
    return shlex.split(line)


@pytest.mark.parametrize(
    ("family", "node_type", "queue", "program"),
    [
        ("p4d", "HeadNode", "", ["head_node.py"]),
        ("p4d", "ComputeFleet", "gpu", ["compute_node.py", "gpu"]),
        ("trn1", "ComputeFleet", "neuron", ["compute_node.py", "neuron"]),
    ],
)
def test_a_node_publishes_what_it_alone_knows_every_two_minutes(
    node: Node, family: str, node_type: str, queue: str, program: list[str]
) -> None:
    units = be_a_parallelcluster_node(node, queue=queue)
    digest = node.publish(family)
    done = node.boot(node_type=node_type)
    assert done.returncode == 0, done.stderr
    _, interpreter, path, *arguments = _what_runs(units)
    assert interpreter == "python3"
    assert Path(path).is_file()
    assert Path(path) == node.bundles / digest / "bootstrap" / "metrics" / program[0]
    if node_type == "HeadNode":
        program = [
            *program,
            "--state",
            str(node.slash / "var/lib/training-cluster/metrics"),
            "--runs",
            str(node.shared / "runs"),
        ]
    assert arguments == [*program[1:], "--cluster", "training", "--region", "us-east-1"]
    timer = (units / f"{METRICS}.timer").read_text()
    assert "OnCalendar=*:0/2\n" in timer
    assert "RandomizedDelaySec=20\n" in timer, "CloudWatch accepts 500 requests a second"
    *_, reload, enable = (node.root / "systemctl").read_text().splitlines()
    assert (reload, enable.split()[:3]) == ("daemon-reload", ["enable", "--now", f"{METRICS}.timer"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node_type", "queue"), [("LoginNode", ""), ("ComputeFleet", "cpu")], ids=["login", "cpu"]
)
def test_a_node_with_nothing_to_publish_has_no_timer_for_it(node: Node, node_type: str, queue: str) -> None:
    units = be_a_parallelcluster_node(node, queue=queue)
    node.publish("p4d", cpu_queue="on")
    assert node.boot(node_type=node_type).returncode == 0
    assert not (units / f"{METRICS}.timer").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node_type", "has"), [("HeadNode", True), ("LoginNode", True), ("ComputeFleet", False)]
)
def test_nodes_that_run_no_prolog_look_for_a_missed_update(node: Node, node_type: str, has: bool) -> None:
    units = be_a_parallelcluster_node(node)
    node.publish()
    assert node.boot(node_type=node_type).returncode == 0
    assert (f"{FOLLOW}.timer" in (node.root / "systemctl").read_text().split()) is has
    assert (units / f"{FOLLOW}.timer").exists() is has


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node_type", "has"), [("HeadNode", False), ("ComputeFleet", True)], ids=["head", "compute"]
)
def test_compute_nodes_check_their_health_each_hour(node: Node, node_type: str, has: bool) -> None:
    units = be_a_parallelcluster_node(node)
    digest = node.publish()
    assert node.boot(node_type=node_type).returncode == 0
    assert (f"{HEALTH}.timer" in (node.root / "systemctl").read_text().split()) is has
    if not has:
        return
    timer = (units / f"{HEALTH}.timer").read_text()
    assert "OnCalendar=hourly\n" in timer
    assert "RandomizedDelaySec=0\n" in timer, "the drain limit counts the verdicts of all nodes"
    service = (units / f"{HEALTH}.service").read_text()
    (line,) = re.findall("^ExecStart=(.*)$", service, re.MULTILINE)
    script = node.bundles / digest / "bootstrap" / "health" / "judge-node.sh"
    assert shlex.split(line)[1:] == ["bash", str(script), "idle"]
    assert script.is_file()
    assert "SuccessExitStatus=9\n" in service
    # A node that still starts, whose GPUs have no fabric yet, is not judged.
    assert "ExecCondition=/usr/bin/env pgrep --exact slurmd\n" in service


@pytest.mark.slow
def test_a_rehearsal_starts_no_timer(node: Node) -> None:
    units = be_a_parallelcluster_node(node)
    (node.root / "slash" / "etc" / "parallelcluster" / "cfnconfig").unlink()
    node.publish()
    assert node.boot().returncode == 0
    assert not units.exists()
    assert not (node.root / "systemctl").exists()


@pytest.mark.slow
def test_after_an_update_the_timer_runs_the_new_bundles_program(node: Node) -> None:
    units = be_a_parallelcluster_node(node)
    node.publish()
    node.boot()
    digest = node.publish("p5")
    assert node.boot(f"bundle-sha256={digest}").returncode == 0
    assert digest in _what_runs(units)[2]
    names = [f"{name}.{kind}" for name in (FOLLOW, METRICS) for kind in ("service", "timer")]
    assert sorted(path.name for path in units.iterdir() if path.stem in (FOLLOW, METRICS)) == names


@pytest.mark.slow
def test_a_node_that_cannot_publish_starts_all_the_same_and_says_so(node: Node) -> None:
    be_a_parallelcluster_node(node, systemctl=NO_TIMERS)
    node.publish()
    done = node.boot(node_type="ComputeFleet")
    assert done.returncode == 0, done.stderr
    assert "this node does not have all of its timers" in done.stderr
    assert "no systemd here" in done.stderr
