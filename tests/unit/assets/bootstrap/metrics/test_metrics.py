"""Metrics of nodes: the real programs, with fakes of sinfo, nvidia-smi, neuron-monitor and aws."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.jobs_head_node import SAY
from training_cluster.monitoring.metrics import PUBLISHED_EVERY
from training_cluster.paths import ASSETS

METRICS = ASSETS / "bootstrap" / "metrics"
Datum = dict[str, Any]


def nodes_of(partition: str, word: str, number: int) -> str:
    """Return sinfo's lines of nodes in one state."""
    return "".join(
        f"{partition}|up|{word}|1|{partition}-dy-x-{i}|Unknown|none|10.0.0.{i}\n" for i in range(number)
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
        self.has(program, f'{SAY}text="$(cat {program}.txt; echo .)"; say "${{text%.}}"')

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

    def nodes(self, *, braked: int = 0) -> dict[tuple[str, str], float]:
        """Return the published nodes by partition and state; `braked` checks are published, too."""
        found, published = {}, self.published()
        checks = [datum for datum in published if datum["MetricName"] == "BrakedChecks"]
        assert [datum["StatisticValues"]["Sum"] for datum in checks] == [braked] * bool(braked)
        for datum in (datum for datum in published if datum not in checks):
            dimensions = {each["Name"]: each["Value"] for each in datum["Dimensions"]}
            assert dimensions.pop("ClusterName") == "training"
            assert datum["MetricName"] == "Nodes"
            found[dimensions["Partition"], dimensions["State"]] = datum["StatisticValues"]["Sum"]
        return found


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


WORDS = {
    "allocated": "allocated allocated+ mixed mixed+ completing allocated@ allocated$ allocated-",
    "idle": "idle planned reserved idle- idle@",
    "powering_up": "idle# mixed# allocated# powering_up",
    "powering_down": "idle% idle! allocated! mixed% power_down powering_down",
    "down": "down down* down# down% drained draining draining@ fail inval maint idle* unknown* new",
    "": "idle~ down~ drained~ powered_down",
}


def test_every_word_of_sinfos_is_one_state(node: Node) -> None:
    """A partition for each word has one node in that state, and none in others."""
    of = {f"{state}-{number}": word for state in WORDS for number, word in enumerate(WORDS[state].split())}
    node.says("sinfo", "".join(nodes_of(name, word, 1) for name, word in of.items()))
    assert node.run("head_node.py").returncode == 0
    found = {(name, state) for (name, state), number in node.nodes().items() if number}
    assert found == {(name, name.partition("-")[0]) for name in of if name[0] != "-"}


def test_states_are_counted_and_others_zero(node: Node) -> None:
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
    arguments = (node.root / "arguments").read_text().splitlines()
    assert arguments[:-1] == [
        *("cloudwatch", "put-metric-data", "--region", "eu-west-1"),
        *("--namespace", "TrainingCluster", "--metric-data"),
    ]


def test_braked_checks_count_for_an_hour(node: Node) -> None:
    """A failure publishes nothing, nor does a cluster without nodes."""
    verdicts = node.root / "opt/slurm/etc/training-cluster-verdicts/gpu"
    verdicts.mkdir(parents=True)
    for name, minutes_ago in (("10-gpus", 1), ("40-efa", 61)):
        (verdicts / f".braked-{name}").touch()
        os.utime(verdicts / f".braked-{name}", (time.time() - 60 * minutes_ago,) * 2)
    node.says("sinfo", nodes_of("gpu", "idle", 2))
    assert node.run("head_node.py").returncode == 0
    node.nodes(braked=1)
    (node.root / "data").unlink()
    (verdicts / ".braked-10-gpus").unlink()
    node.says("sinfo", "")
    assert node.run("head_node.py").returncode == 0
    node.has("sinfo", "exit 1")
    assert node.run("head_node.py").returncode != 0
    assert not (node.root / "data").exists()
    node.says("sinfo", nodes_of("gpu", "idle", 2))
    node.has("aws", "exit 254")
    assert node.run("head_node.py").returncode != 0


def _statistics(node: Node) -> dict[str, dict[str, float]]:
    """Return the statistics by metric; each has the cluster as its only dimension."""
    for datum in node.published():
        assert datum["Dimensions"] == [{"Name": "ClusterName", "Value": "training"}]
        assert datum["Unit"] == "Percent"
    return {datum["MetricName"]: datum["StatisticValues"] for datum in node.published()}


def test_all_gpus_are_one_set_of_statistics(node: Node) -> None:
    node.says("nvidia-smi", gpu(0, 100, 40960) + gpu(1, 50, 0) + gpu(2, "[N/A]", "[N/A]"))
    done = node.run("compute_node.py", "gpu")
    assert done.returncode == 0, done.stderr
    assert _statistics(node) == {
        "AcceleratorUtilization": {"SampleCount": 2, "Sum": 150, "Minimum": 50, "Maximum": 100},
        "AcceleratorMemoryUsed": {"SampleCount": 2, "Sum": 50, "Minimum": 0, "Maximum": 50},
    }


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


def test_neuroncores_without_a_job_are_idle(node: Node) -> None:
    """Memory is of all devices. neuron-monitor never ends by itself, and two cores may be one logical."""
    node.has("timeout", 'echo "$@" >timeout.arguments; shift; "$@"; exit 124')
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
    seconds, program, _, config = (node.root / "timeout.arguments").read_text().split()
    assert (int(seconds) < 20, program) == (True, "neuron-monitor")
    assert json.loads(Path(config).read_text())["period"] == "5s"
    node.says("neuron-monitor", _report(_runtime({"0": 50.0}), logical_neuroncore_config=2) + "\n")
    node.run("compute_node.py", "neuron")
    assert _statistics(node)["AcceleratorUtilization"]["SampleCount"] == 2
    (node.root / "data").unlink()
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
