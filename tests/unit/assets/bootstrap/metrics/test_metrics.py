"""Metrics of nodes: the real programs, with fakes of sinfo, nvidia-smi, neuron-monitor and aws."""

import argparse
import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from training_cluster.monitoring.metrics import PUBLISHED_EVERY
from training_cluster.paths import ASSETS

METRICS = ASSETS / "bootstrap" / "metrics"
Datum = dict[str, Any]


def nodes_of(partition: str, word: str, number: int) -> str:
    """Return sinfo's lines of nodes in one state."""
    return "".join(
        f"{partition}|{partition}-dy-x-{i}|{word}|10.0.0.{i}|Unknown|none\n" for i in range(number)
    )


def gpu(index: int, busy: object, memory: object, *, rest: str = "0x0, 0, 0, N/A, N/A") -> str:
    """Return nvidia-smi's line of a GPU of 80 GiB."""
    return (
        f"{index}, 00000000:{index + 16:02X}:1C.0, NVIDIA H100, 580.95, {busy}, {memory}, 81920, "
        f"350.25, 700.00, 45, [N/A], 1755, 1980, {rest}\n"
    )


class Node:
    """A folder of programs, which a test fills."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "run").mkdir()
        self.has("squeue", "")
        self.has("journalctl", "")
        self.has("sdiag", "")
        self.has(
            "aws", 'for word in "$@"; do last="$word"; echo "$word"; done >arguments; echo "$last" >data'
        )

    def has(self, program: str, script: str) -> None:
        path = self.root / program
        path.write_text(f"#!/bin/bash\ncd {self.root}\n{script}\n")
        path.chmod(0o755)

    def says(self, program: str, output: str) -> None:
        (self.root / f"{program}.txt").write_text(output)
        self.has(program, f'echo "$@" >{program}.arguments; cat {program}.txt')

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        if program == "head_node.py":
            arguments += ("--state", str(self.root / "state"), "--runs", str(self.root / "runs"))
        return subprocess.run(
            [
                *(sys.executable, "-B", str(METRICS / program), *arguments),
                *("--cluster", "training", "--region", "eu-west-1"),
            ],
            env={"PATH": f"{self.root}:/usr/bin:/bin", "TRAINING_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )

    def published(self) -> list[Datum]:
        data: list[Datum] = json.loads((self.root / "data").read_text())
        return data

    def nodes(self) -> dict[tuple[str, str], float]:
        """Return the published nodes by partition and state."""
        found = {}
        for datum in self.published():
            dimensions = {each["Name"]: each["Value"] for each in datum["Dimensions"]}
            assert dimensions.pop("ClusterName") == "training"
            assert datum["MetricName"] == "Nodes"
            found[dimensions["Partition"], dimensions["State"]] = datum["StatisticValues"]["Sum"]
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_states_of_a_partitions_nodes_are_counted_and_the_rest_are_zero(node: Node) -> None:
    node.says(
        "sinfo",
        nodes_of("gpu", "idle~", 10)
        + nodes_of("gpu", "mixed", 1)
        + nodes_of("gpu", "allocated", 2)
        + nodes_of("gpu", "down", 1)
        + nodes_of("cpu", "idle", 3),
    )
    done = node.run("head_node.py")
    assert done.returncode == 0, done.stderr
    assert node.nodes() == {
        ("gpu", "allocated"): 3,
        ("gpu", "idle"): 0,
        ("gpu", "powering_up"): 0,
        ("gpu", "powering_down"): 0,
        ("gpu", "down"): 1,
        ("cpu", "allocated"): 0,
        ("cpu", "idle"): 3,
        ("cpu", "powering_up"): 0,
        ("cpu", "powering_down"): 0,
        ("cpu", "down"): 0,
    }
    assert (node.root / "sinfo.arguments").read_text().strip() == (
        "--all --Node --noheader --format %R|%N|%T|%o|%H|%E"
    )
    arguments = (node.root / "arguments").read_text().splitlines()
    assert arguments[:-1] == [
        *("cloudwatch", "put-metric-data", "--region", "eu-west-1"),
        *("--namespace", "TrainingCluster", "--metric-data"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("allocated allocated+ mixed mixed+ completing allocated@ allocated$ allocated-", "allocated"),
        ("idle planned reserved idle- idle@", "idle"),
        ("idle# mixed# allocated# powering_up", "powering_up"),
        ("idle% idle! allocated! mixed% power_down powering_down", "powering_down"),
        ("down down* down# down% drained draining draining@ fail inval maint idle* unknown* new", "down"),
        ("idle~ down~ drained~ powered_down", None),
    ],
)
def test_every_word_of_sinfos_is_one_state(node: Node, words: str, state: str | None) -> None:
    for word in words.split():
        node.says("sinfo", nodes_of("gpu", word, 7))
        assert node.run("head_node.py").returncode == 0
        counted = {found for (_, found), nodes in node.nodes().items() if nodes == 7}
        assert counted == ({state} if state else set()), word


@pytest.mark.parametrize(
    ("broken", "script"), [("sinfo", "exit 1"), ("aws", "echo 'AccessDenied' >&2; exit 254")]
)
def test_a_tool_that_fails_fails_this_minute_and_publishes_nothing(
    node: Node, broken: str, script: str
) -> None:
    node.says("sinfo", nodes_of("gpu", "idle", 2))
    node.has(broken, script)
    assert node.run("head_node.py").returncode != 0
    assert not (node.root / "data").exists()


def test_a_cluster_without_nodes_publishes_nothing(node: Node) -> None:
    node.says("sinfo", "")
    assert node.run("head_node.py").returncode == 0
    assert not (node.root / "data").exists()


def _statistics(node: Node) -> dict[str, dict[str, float]]:
    """Return the statistics by metric; each has the cluster as its only dimension."""
    for datum in node.published():
        assert datum["Dimensions"] == [{"Name": "ClusterName", "Value": "training"}]
        assert datum["Unit"] == "Percent"
    return {datum["MetricName"]: datum["StatisticValues"] for datum in node.published()}


def test_all_gpus_of_a_node_are_one_set_of_statistics(node: Node) -> None:
    node.says("nvidia-smi", gpu(0, 100, 40960) + gpu(1, 50, 0))
    done = node.run("compute_node.py", "gpu")
    assert done.returncode == 0, done.stderr
    assert _statistics(node) == {
        "AcceleratorUtilization": {"SampleCount": 2, "Sum": 150, "Minimum": 50, "Maximum": 100},
        "AcceleratorMemoryUsed": {"SampleCount": 2, "Sum": 50, "Minimum": 0, "Maximum": 50},
    }


def test_a_gpu_that_does_not_say_is_left_out(node: Node) -> None:
    node.says("nvidia-smi", gpu(0, "[N/A]", 100))
    assert node.run("compute_node.py", "gpu").returncode == 0
    assert set(_statistics(node)) == {"AcceleratorMemoryUsed"}


def _report(*runtimes: Datum, **hardware: int) -> str:
    about = {
        "neuron_device_count": 2,
        "neuroncore_per_device_count": 2,
        "neuron_device_memory_size": 1000,
    }
    return json.dumps({"neuron_runtime_data": list(runtimes), "neuron_hardware_info": about | hardware})


def _runtime(cores: dict[str, float], **memory: int) -> Datum:
    return {
        "report": {
            "neuroncore_counters": {
                "neuroncores_in_use": {core: {"neuroncore_utilization": used} for core, used in cores.items()}
            },
            "memory_used": {"neuron_runtime_used_bytes": memory},
        }
    }


def test_neuroncores_that_no_job_uses_are_idle_and_memory_is_of_all_devices(node: Node) -> None:
    reports = [
        _report(),
        _report(_runtime({"0": 90.0}, neuron_device=400), _runtime({"1": 70.0}, device=100)),
    ]
    node.says("neuron-monitor", "\n".join(reports) + '\n{"neuron_runtime_da')
    done = node.run("compute_node.py", "neuron")
    assert done.returncode == 0, done.stderr
    assert _statistics(node) == {
        "AcceleratorUtilization": {"SampleCount": 4, "Sum": 160, "Minimum": 0, "Maximum": 90},
        "AcceleratorMemoryUsed": {"SampleCount": 1, "Sum": 25, "Minimum": 25, "Maximum": 25},
    }


def test_two_physical_neuroncores_may_be_one_logical(node: Node) -> None:
    node.says("neuron-monitor", _report(_runtime({"0": 50.0}), logical_neuroncore_config=2) + "\n")
    node.run("compute_node.py", "neuron")
    assert _statistics(node)["AcceleratorUtilization"]["SampleCount"] == 2


def test_neuron_monitor_never_ends_by_itself_and_is_ended(node: Node) -> None:
    node.has("timeout", 'echo "$@" >timeout.arguments; shift; "$@"; exit 124')
    node.says("neuron-monitor", _report(_runtime({"0": 50.0})) + "\n")
    assert node.run("compute_node.py", "neuron").returncode == 0
    seconds, program, _, config = (node.root / "timeout.arguments").read_text().split()
    assert (int(seconds) < 20, program) == (True, "neuron-monitor")
    assert json.loads(Path(config).read_text())["period"] == "5s"


def test_a_neuron_monitor_that_says_nothing_is_a_failure(node: Node) -> None:
    node.says("neuron-monitor", "")
    done = node.run("compute_node.py", "neuron")
    assert done.returncode == 1
    assert "neuron-monitor reported nothing within" in done.stderr
    assert not (node.root / "data").exists()


@pytest.mark.parametrize("late", [0, 1], ids=["at once", "after the longest delay"])
def test_text_files_publish_every_two_minutes(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    step = (ASSETS / "bootstrap" / "steps" / "85-start-timers.sh").read_text()
    (delay,) = re.findall(r"^  timer training-cluster-metrics .* (\d+) <<END$", step, re.MULTILINE)
    monkeypatch.syspath_prepend(str(METRICS))
    module = importlib.import_module("cloudwatch")
    sys.modules.pop("cloudwatch")
    asked = argparse.Namespace(textfiles="/run", no_cloudwatch=False)
    due = []
    start = 1_800_000_001 + late * int(delay)  # a timer's runs start up to a second late, and after its delay
    for seconds in range(start, start + 240, 30):
        monkeypatch.setattr(time, "time", lambda at=seconds: float(at))
        due.append(module.is_due(asked))
    assert due == [True, False, False, False] * 2
    assert PUBLISHED_EVERY.to_seconds() == module.PUBLISHED_EVERY_S
