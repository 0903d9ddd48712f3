"""Metrics of nodes: the real programs, with fakes of tools; promtool reads the text files that they write."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from ops.asset_code import asset_code
from tests.unit.ops.jobs_head_node import SAY, job_line
from training_cluster.monitoring.metrics import PUBLISHED_EVERY
from training_cluster.paths import ASSETS, ROOT, TRAINING

METRICS = ASSETS / "bootstrap" / "metrics"
PROMTOOL = ROOT / ".cache" / "prometheus" / "usr" / "bin" / "promtool"
XID = "NVRM: Xid (PCI:0000:10:1c): {}, pid=1, name=python"
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
    """A folder of programs, which a test fills, and of what the metrics' programs write."""

    def __init__(self, root: Path) -> None:
        self.root, self.files = root, root / "textfiles"
        for program in ("sinfo", "squeue", "sdiag", "journalctl"):
            self.says(program, "")
        self.says("sinfo", nodes_of("gpu", "idle", 2))
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
        )

    def writes(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program that writes text files and publishes nothing."""
        return self.run(program, *arguments, "--no-cloudwatch", "--textfiles", str(self.files))

    def head(self, *more: str) -> subprocess.CompletedProcess[str]:
        (self.root / "prices").write_text("head - 0.5\ngpu x 10\ncpu y 1\n")
        targets = ("--targets", str(self.root / "etc" / "nodes.json"), "--storage", str(self.root))
        return self.writes("head_node.py", "--prices", str(self.root / "prices"), *targets, *more)

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
            assert (dimensions.pop("ClusterName"), datum["MetricName"]) == ("training", "Nodes")
            found[dimensions["Partition"], dimensions["State"]] = datum["StatisticValues"]["Sum"]
        return found

    def is_read_by_promtool(self) -> None:
        text = "".join(file.read_text() for file in sorted(self.files.glob("*.prom")))
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True)
        assert not [line for line in checked.stderr.splitlines() if "error" in line.lower()], checked.stderr
        assert checked.returncode in (0, 3), checked.stderr  # 3: advice about names

    def samples(self) -> dict[str, float]:
        return dict(self._lines())

    def _lines(self) -> Iterator[tuple[str, float]]:
        for file in self.files.glob("*.prom"):
            for line in file.read_text().splitlines():
                if not line.startswith("#"):
                    series, _, value = line.rpartition(" ")
                    yield series, float(value)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_states_are_counted_and_others_zero(node: Node) -> None:
    gpu_nodes = {"idle~": 10, "mixed": 1, "allocated": 2, "down": 1}
    text = "".join(nodes_of("gpu", word, number) for word, number in gpu_nodes.items())
    node.says("sinfo", text + nodes_of("cpu", "idle", 3))
    done = node.run("head_node.py")
    assert done.returncode == 0, done.stderr
    assert node.nodes() == {
        (partition, state): {"gpu allocated": 3, "gpu down": 1, "cpu idle": 3}.get(f"{partition} {state}", 0)
        for partition in ("gpu", "cpu")
        for state in ("allocated", "idle", "powering_up", "powering_down", "down")
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
    about = {"neuron_device_count": 2, "neuroncore_per_device_count": 2, "neuron_device_memory_size": 1000}
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


def test_text_files_publish_every_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    step = (ASSETS / "bootstrap" / "steps" / "85-start-timers.sh").read_text()
    (delay,) = re.findall(r"^  timer training-cluster-metrics .* (\d+) <<END$", step, re.MULTILINE)
    module = asset_code("bootstrap/metrics", "cloudwatch").cloudwatch
    asked = argparse.Namespace(textfiles="/run", no_cloudwatch=False)
    for late in (0, int(delay)):  # a timer's runs start up to a second late, and after its delay
        due = []
        for seconds in range(1_800_000_001 + late, 1_800_000_001 + late + 240, 30):
            monkeypatch.setattr(time, "time", lambda at=seconds: float(at))
            due.append(module.is_due(asked))
        assert due == [True, False, False, False] * 2
    assert PUBLISHED_EVERY.to_seconds() == module.PUBLISHED_EVERY_S


NVLINK = r"""case "$*" in
*-gt*) printf 'GPU 0: H100 (UUID: 1)\n\t Link 0: Data Tx: 10 KiB\n\t Link 0: Data Rx: 1 KiB\n'
  printf '\t Link 1: Data Tx: 20 KiB\nGPU 1: H100\n\t Link 0: Data Tx: 5 KiB\n' ;;
*-e*) printf 'GPU 0: H100\n\t Link 0: Replay Errors: 2\n\t Link 1: Replay Errors: 3\n'
  printf '\t Link 1: CRC Errors: 0\n' ;;
*) cat nvidia-smi.txt ;;
esac"""


def test_a_compute_node_describes_its_hardware(node: Node) -> None:
    """Counters of all EFA devices and of a GPU's links are added up; errors name their device."""
    for device, errors in (("rdmap0s6", 0), ("rdmap1s6", 7)):
        counters = node.root / "sys/class/infiniband" / device / "ports/1/hw_counters"
        counters.mkdir(parents=True)
        for name, value in {"tx_bytes": 100, "retrans_pkts": errors, "lifespan": 10}.items():
            (counters / name).write_text(f"{value}\n")
    node.says(
        "lctl",
        "snapshot_time 1.2 secs.nsecs\nread_bytes 4 samples [bytes] 1 4096 8192 999\n"
        "write_bytes 2 samples [bytes] 1 4096 100 9\nopen 31 samples [usec] 1 2 3 4\n",
    )
    slow = "0x0000000000000044, 3, 1, Completed, Success"
    node.says(
        "nvidia-smi",
        gpu(0, 97, 40960, rest=slow) + gpu(1, "[N/A]", 0, rest="N/A, N/A, N/A, In Progress, N/A"),
    )
    node.has("nvidia-smi", NVLINK)
    asked = "154, GPU recovery action changed from 0x0 (None) to 0x{} (GPU {})"
    xids = (79, 13, 13, asked.format(1, "Reset Required"), asked.format(0, "None"))
    node.says("journalctl", "".join(f"{XID.format(xid)}\n" for xid in xids))
    done = node.writes("compute_node.py", "gpu")
    assert done.returncode == 0, done.stderr
    found = node.samples()
    assert found['gpu_utilization_ratio{gpu="0"}'] == pytest.approx(0.97)
    assert 'gpu_utilization_ratio{gpu="1"}' not in found
    assert found['gpu_memory_used_bytes{gpu="0"}'] == 40 << 30
    assert found['gpu_sm_clock_hertz{gpu="0"}'] == 1_755_000_000
    assert found['gpu_throttled{gpu="0",reason="software_power_cap"}'] == 1
    assert found['gpu_throttled{gpu="0",reason="hardware_thermal"}'] == 1
    assert found['gpu_throttled{gpu="0",reason="power_brake"}'] == 0
    assert found['gpu_ecc_errors_total{gpu="0",kind="uncorrected"}'] == 1
    assert (found['gpu_fabric_ready{gpu="0"}'], found['gpu_fabric_ready{gpu="1"}']) == (1, 0)
    assert found['gpu_xid_errors_total{gpu="0",xid="79",class="fatal"}'] == 1
    assert found['gpu_xid_errors_total{gpu="0",xid="13",class="application"}'] == 2
    for kind in ("fatal", "other"):
        assert found[f'gpu_xid_errors_total{{gpu="0",xid="154",class="{kind}"}}'] == 1
    assert found['gpu_nvlink_bytes_total{gpu="0",direction="tx"}'] == 30 * 1024
    assert found['gpu_nvlink_bytes_total{gpu="1",direction="tx"}'] == 5 * 1024
    assert found['gpu_nvlink_errors_total{gpu="0",kind="replay"}'] == 5
    assert {name: value for name, value in found.items() if name.startswith("efa_")} == {
        'efa_hw_counter_total{counter="tx_bytes"}': 200,
        'efa_hw_counter_total{counter="retrans_pkts"}': 7,
        'efa_device_errors_total{device="rdmap1s6",counter="retrans_pkts"}': 7,
    }
    assert found['lustre_client_bytes_total{direction="read"}'] == 8192
    assert found['lustre_client_bytes_total{direction="write"}'] == 100
    assert found['lustre_client_operations_total{operation="open"}'] == 31
    node.is_read_by_promtool()


# A real one, alone in a virtual machine: without a fabric, and nvidia-smi's pages of NVLinks are empty.
H100 = (
    "0, 00000000:00:06.0, NVIDIA H100 80GB HBM3, 580.159.04, 0, 0, 81559, 127.69, 700.00, 38, 45, 1980, "
    "1980, 0x0000000000000000, 0, 0, N/A, N/A\n"
)


def test_a_real_h100_is_read(node: Node) -> None:
    node.says("nvidia-smi", H100)
    node.has("nvidia-smi", "[[ $* == nvlink* ]] || cat nvidia-smi.txt")
    assert node.writes("compute_node.py", "gpu").returncode == 0
    found = node.samples()
    assert found['gpu_memory_size_bytes{gpu="0"}'] == 81559 << 20
    assert (found['gpu_power_watts{gpu="0"}'], found['gpu_memory_temperature_celsius{gpu="0"}']) == (
        127.69,
        45,
    )
    assert not [name for name in found if name.startswith(("gpu_fabric", "gpu_nvlink"))]


def test_an_older_driver_knows_fewer_fields(node: Node) -> None:
    """A reader that fails leaves no old value."""
    node.has(
        "nvidia-smi",
        """case "$*" in
          *nvlink*) ;;
          *fabric.state*) echo 'Field "fabric.state" is not a valid field to query.' >&2; exit 2 ;;
          *fabric.status*) echo 'Field "fabric.status" is not a valid field to query.' >&2; exit 2 ;;
          *) echo '0, 00000000:10:1C.0, V100, 470, 5, 1, 2, 3, 4, 5, 6, 7, 8, 0x0, 0, 0' ;;
        esac""",
    )
    assert node.writes("compute_node.py", "gpu").returncode == 0
    assert node.samples()['gpu_power_watts{gpu="0"}'] == 3
    node.has("nvidia-smi", "echo 'Failed to initialize NVML' >&2; exit 9")
    done = node.writes("compute_node.py", "gpu")
    assert done.returncode == 1
    assert "gpu: CalledProcessError" in done.stderr
    found = node.samples()
    assert not [name for name in found if name.startswith("gpu_")]
    assert found['metrics_reader_success{reader="gpu"}'] == 0
    assert found['metrics_reader_success{reader="host"}'] == 1
    assert found["host_cpus"] == os.cpu_count()


def test_the_head_node_describes_nodes_and_jobs(node: Node) -> None:
    now = int(time.time())
    node.says(
        "squeue",
        job_line(id_="7", name='a "x"', submitted=now - 100, started=now - 40, user="ann", account="nlp")
        + job_line("PENDING", "Resources", id_="8", submitted=now - 500, started="N/A", account="nlp")
        + job_line("PENDING", "Resources", id_="9", user="bob", submitted=now - 50, account="nlp"),
    )
    node.says(
        "sdiag",
        "Server thread count:  3\nAgent queue size:    1\n\nMain schedule statistics (microseconds):\n"
        "\tLast cycle:   2500000\n\tLast queue length: 12\n\nBackfilling stats\n\tLast cycle: 40\n"
        "\nRemote Procedure Call statistics by message type\n\tLast cycle: 9\n",
    )
    node.says(
        "sinfo",
        "gpu*|up|mixed|1|gpu-dy-x-1|Unknown|none|10.0.0.1\n"
        "all|up|mixed|1|gpu-dy-x-1|Unknown|none|10.0.0.1\n"
        'gpu*|up|drained|1|gpu-dy-x-2|1700000000|training-cluster: "XID" 79, see log|10.0.0.2\n'
        "gpu*|up|idle~|1|gpu-dy-x-3|Unknown|none|gpu-dy-x-3\n"
        "gpu*|up|idle#|1|gpu-dy-x-4|Unknown|none|gpu-dy-x-4\n",
    )
    done = node.head("--budget-usd", "100")
    assert done.returncode == 0, done.stderr
    found = node.samples()
    assert found['slurm_nodes{partition="gpu",state="down"}'] == 1
    assert found['slurm_node_state{node="gpu-dy-x-1",partition="gpu",state="allocated"}'] == 1
    assert not [name for name in found if "gpu-dy-x-3" in name]
    (out,) = [name for name in found if name.startswith("slurm_node_out_since")]
    assert out.endswith(r'reason="training-cluster: \"XID\" 79, see log"}')
    assert found[out] == 1700000000
    targets = json.loads((node.root / "etc" / "nodes.json").read_text())
    assert [each["targets"] for each in targets] == [["10.0.0.1:9100"], ["10.0.0.2:9100"]]
    assert targets[0]["labels"] == {"node": "gpu-dy-x-1", "partition": "gpu"}
    assert (found['cluster_usd_per_hour{partition="gpu"}'], found["cluster_budget_usd"]) == (30, 100)
    running = 'job="7",user="ann",account="nlp",partition="gpu"'
    assert found['slurm_jobs{state="pending",user="bob",account="nlp",partition="gpu"}'] == 1
    assert (found[f"slurm_job_wait_seconds{{{running}}}"], found[f"slurm_job_nodes{{{running}}}"]) == (60, 2)
    assert found[rf'slurm_job_info{{{running},name="a \"x\""}}'] == 1
    waited = found['slurm_queue_wait_seconds{partition="gpu",reason="Resources"}']
    assert 500 <= waited < 520
    assert found['slurm_sdiag{figure="server_threads"}'] == 3
    assert found['slurm_sdiag{figure="main_last_cycle_seconds"}'] == 2.5
    assert found['slurm_sdiag{figure="main_queue"}'] == 12
    assert found['slurm_sdiag{figure="backfill_last_cycle_seconds"}'] == pytest.approx(4e-5)
    node.is_read_by_promtool()


def _run(node: Node, path: str, *rows: str, owner: str = "") -> Path:
    folder = node.root / "runs" / path
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(f"{row}\n" for row in rows))
    if owner:
        (folder / "owner").write_text(f"{owner}\n")
    return folder


def _row(step: int, second: int, loss: str = "2.5") -> str:
    return (
        f'{{"step": {step}, "loss": {loss}, "grad_norm": 0.5, "tokens_per_s": 1000.5, "step_s": 2.0, '
        f'"data_s": 0.5, "mfu": 0.4, "time": "2026-01-01T00:00:{second:02}+00:00"}}'
    )


def _running(job: int, *, uid: int) -> str:
    return job_line(id_=str(job), user="ann", uid=uid)


def test_each_running_jobs_newest_row_is_published(node: Node) -> None:
    uid = os.getuid()
    node.says("squeue", _running(7, uid=uid) + _running(8, uid=uid) + _running(9, uid=uid))
    _run(node, "gpt2/job-7", _row(1, 0), _row(2, 2), _row(3, 4), '{"step": 3, "val_loss": 2.0}', "{half")
    _run(node, "gpt2/my-run", _row(5, 0, loss="null"), owner="8")
    _run(node, "gpt2/old", _row(5, 0), owner="4")
    done = node.head()
    assert done.returncode == 0, done.stderr
    found = {name: value for name, value in node.samples().items() if name.startswith("training_")}
    seven = 'job="7",user="ann",workload="gpt2",run="job-7"'
    assert (found[f"training_step{{{seven}}}"], found[f"training_loss{{{seven}}}"]) == (3, 2.5)
    assert found[f"training_row_interval_seconds{{{seven}}}"] == 2
    assert found[f"training_data_wait_seconds{{{seven}}}"] == 0.5
    assert found[f"training_gradient_norm{{{seven}}}"] == 0.5
    eight = 'job="8",user="ann",workload="gpt2",run="my-run"'
    assert found[f"training_loss_is_finite{{{eight}}}"] == 0
    assert f"training_loss{{{eight}}}" not in found
    assert {re.search('job="([0-9]+)"', name)[1] for name in found} == {"7", "8"}  # type: ignore[index]


def test_each_owner_is_read_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAINING))
    module = asset_code("bootstrap/metrics", "training", "slurm", "textfile", "names").training
    for job in range(1, 6):
        _run(node, f"gpt2/run-{job}", owner=str(job))
    read = Mock(wraps=module._read)
    monkeypatch.setattr(module, "_read", read)
    jobs = [SimpleNamespace(job_id=str(job), uid=os.getuid(), started=0.0) for job in range(3, 9)]
    found = module._folders(jobs, runs=node.root / "runs", kept=node.root / "kept")
    assert (found["3"], found["5"], found["8"], read.call_count) == ("gpt2/run-3", "gpt2/run-5", "", 5)


def test_root_reads_only_what_is_theirs(node: Node) -> None:
    other = os.getuid() + 1
    node.says("squeue", _running(7, uid=other) + _running(8, uid=os.getuid()) + _running(9, uid=os.getuid()))
    _run(node, "gpt2/job-7", _row(1, 0))
    (_run(node, "gpt2/job-8") / "metrics.jsonl").unlink()
    (node.root / "runs/gpt2/job-8/metrics.jsonl").symlink_to(node.root / "runs/gpt2/job-7/metrics.jsonl")
    (_run(node, "gpt2/job-9") / "metrics.jsonl").unlink()
    os.mkfifo(node.root / "runs/gpt2/job-9/metrics.jsonl")
    assert node.head().returncode == 0
    assert not [name for name in node.samples() if name.startswith("training_")]


@pytest.mark.root
def test_a_strangers_folder_hides_no_run(node: Node) -> None:
    node.says("squeue", _running(7, uid=os.getuid()))
    os.chown(_run(node, "a/job-7", _row(9, 0)), 65534, 65534)
    _run(node, "gpt2/job-7", _row(1, 0))
    assert node.head().returncode == 0
    assert [value for name, value in node.samples().items() if name.startswith("training_step{")] == [1]


def test_spend_adds_up_over_a_month(node: Node) -> None:
    node.head()
    assert node.samples()["cluster_spend_usd"] == 0
    kept = node.root / "state" / "spend.json"
    before = json.loads(kept.read_text())
    kept.write_text(json.dumps({**before, "at": time.time() - 360, "usd": 5}))
    node.head()
    assert node.samples()["cluster_spend_usd"] == pytest.approx(5 + 20.5 / 10, rel=0.01)
    kept.write_text(json.dumps({"month": "2020-01", "at": time.time() - 1e7, "usd": 1000}))
    node.head()
    assert node.samples()["cluster_spend_usd"] == pytest.approx(20.5 / 4, rel=0.01)
    kept.write_text("{half")
    assert node.head().returncode == 0


def test_a_job_is_noted_on_its_node(tmp_path: Path) -> None:
    def call(moment: str, job: str, user: str = "ann") -> int:
        text = (METRICS / "job-file.sh").read_text().replace("\n", f"\nreadonly MOMENT={moment}\n", 1)
        return subprocess.run(
            ["bash", "-c", text],
            env={
                "TRAINING_METRICS": str(tmp_path / "run"),
                "SLURM_JOB_ID": job,
                "SLURM_JOB_USER": user,
                "SLURM_JOB_PARTITION": "gpu",
                "SLURMD_NODENAME": "gpu-dy-x-1",
            },
        ).returncode

    assert (call("prolog", "7"), call("prolog", "8", user='b"o\\b')) == (0, 0)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["job-7.prom", "job-8.prom"]
    last = (tmp_path / "run/job-7.prom").read_text().splitlines()[-1]
    assert last == 'slurm_node_job_info{node="gpu-dy-x-1",job="7",user="ann",partition="gpu"} 1'
    assert 'user="b_o_b"' in (tmp_path / "run/job-8.prom").read_text()
    assert (call("epilog", "7"), call("epilog", "7")) == (0, 0)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["job-8.prom"]
    assert call("prolog", "") == 0, "Slurm drains a node whose prolog fails"
