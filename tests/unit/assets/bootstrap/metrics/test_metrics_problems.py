"""Problems that CloudWatch's alarms report: counted by the real programs, published only while they exist."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.unit.assets.bootstrap.metrics.test_metrics import Node, gpu, nodes_of
from training_cluster.monitoring.metrics import GPU_PROBLEMS, JOB_PROBLEMS, PUBLISHED_EVERY
from training_cluster.paths import ASSETS

METRICS = ASSETS / "bootstrap" / "metrics"
XID = "NVRM: Xid (PCI:0000:10:1c): {}, pid=1, name=x\n"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.says("sinfo", nodes_of("gpu", "idle", 1))
    node.says("nvidia-smi", gpu(0, 90, 100))
    node.has("pgrep", "exit 0")
    return node


def _problems(node: Node) -> dict[str, float]:
    found = [each for each in node.published() if each["MetricName"] in (*JOB_PROBLEMS, *GPU_PROBLEMS)]
    assert all(each["Dimensions"] == [{"Name": "ClusterName", "Value": "training"}] for each in found)
    return {each["MetricName"]: each["StatisticValues"]["Sum"] for each in found}


@pytest.mark.parametrize(("minutes", "out"), [(9, {}), (11, {"NodeOut": 1})])
def test_a_node_that_takes_no_job_counts_after_ten_minutes(node: Node, minutes: int, out: object) -> None:
    since = int(time.time()) - 60 * minutes
    line = f"gpu-dy-x-2|drained|10.0.0.2|{since}|bad GPU"
    node.says("sinfo", nodes_of("gpu", "idle", 1) + f"gpu|{line}\nall|{line}\n")
    assert node.run("head_node.py").returncode == 0
    assert _problems(node) == out


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ("Server thread count:  200\nAgent queue size:     200\n", {}),
        ("Server thread count:  256\nAgent queue size:     3\n", {"SchedulerBacklog": 1}),
        ("DBD Agent queue size: 201\nAgent queue size:     201\n", {"SchedulerBacklog": 2}),
        ("Main schedule statistics (microseconds):\n\tLast cycle:   5000001\n", {"SchedulerBacklog": 1}),
        ("Backfilling stats\n\tLast cycle:   9000000\n", {}),
    ],
)
def test_a_scheduler_that_falls_behind_counts(node: Node, figures: str, found: object) -> None:
    node.says("sdiag", figures)
    assert node.run("head_node.py").returncode == 0
    assert _problems(node) == found


@pytest.mark.parametrize("textfiles", [False, True])
def test_a_scheduler_that_does_not_answer_counts(node: Node, textfiles: bool) -> None:
    node.has("sinfo", "exec sleep 30")
    folders = {"--state": "state", "--runs": "runs"} | ({"--textfiles": "files"} if textfiles else {})
    code = "import command, cloudwatch, head_node; command.TIMEOUT_S = 0.5; "
    code += "cloudwatch.is_due = lambda _: True; head_node.main()"
    done = subprocess.run(
        [
            *(sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(METRICS)!r}); {code}"),
            *("--cluster", "training", "--region", "eu-west-1"),
            *(word for option, name in folders.items() for word in (option, str(node.root / name))),
        ],
        env={"PATH": f"{node.root}:/usr/bin:/bin", "TRAINING_ROOT": str(node.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "timed out" in done.stderr
    assert (node.root / "data").exists() != textfiles, "the rules of Prometheus report what stands still"
    assert textfiles or _problems(node) == {"SchedulerBacklog": 1}


def _run_of_a_job(node: Node, *rows: str) -> None:
    node.says("squeue", f"7|RUNNING|ann|{os.getuid()}|nlp|gpu|2|1|2|None|x\n")
    run = node.root / "runs" / "gpt2" / "job-7"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text("".join(f"{row}\n" for row in rows))


def _row(seconds_ago: float, loss: str = "2.5") -> str:
    then = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - seconds_ago))
    return f'{{"step": 1, "loss": {loss}, "time": "{then}"}}'


def test_a_running_jobs_loss_that_is_no_number_counts(node: Node) -> None:
    _run_of_a_job(node, _row(4), _row(2, "null"))
    assert node.run("head_node.py").returncode == 0
    assert _problems(node) == {"LossNotFinite": 1}


@pytest.mark.parametrize(
    ("between", "late", "found"),
    [(2, 890, {}), (2, 905, {"NoStep": 1}), (200, 1990, {}), (200, 2010, {"NoStep": 1})],
)
def test_a_run_counts_when_its_step_is_ten_usual_ones_late_and_15_minutes(
    node: Node, between: int, late: int, found: object
) -> None:
    _run_of_a_job(node, _row(late + between), _row(late))
    assert node.run("head_node.py").returncode == 0
    assert _problems(node) == found


def _idle(node: Node, minutes: float) -> dict[str, float]:
    """Return what a node publishes whose GPUs have been idle for some minutes."""
    since = node.root / "run" / "training-cluster-gpus-idle"
    if minutes and since.exists():
        then = time.time() - 60 * minutes
        os.utime(since, (then, then))
    node.says("nvidia-smi", gpu(0, 0, 100) + gpu(1, 4, 0))
    assert node.run("compute_node.py", "gpu").returncode == 0
    return _problems(node)


def test_gpus_count_that_idle_in_a_job_for_15_minutes_and_a_busy_one_ends_it(node: Node) -> None:
    assert _idle(node, 0) == {}
    assert _idle(node, 14) == {}
    assert _idle(node, 16) == {"GpusIdleInJob": 1}
    node.says("nvidia-smi", gpu(0, 0, 100) + gpu(1, 5, 0))
    assert node.run("compute_node.py", "gpu").returncode == 0
    assert _problems(node) == {}
    assert _idle(node, 0) == {}, "it counts from the next idle minute"


def test_gpus_without_a_job_may_idle(node: Node) -> None:
    _idle(node, 0)
    node.has("pgrep", '[[ "$*" == "--full slurmstepd: \\\\[" ]] && exit 1; exit 2')
    assert _idle(node, 16) == {}
    node.has("pgrep", "exit 0")
    assert _idle(node, 0) == {}, "a job that starts on idle GPUs has 15 minutes"


def test_a_fatal_xid_counts_and_a_programs_does_not(node: Node) -> None:
    node.says("journalctl", XID.format(79) + XID.format(13))
    assert node.run("compute_node.py", "gpu").returncode == 0
    assert _problems(node) == {"FatalXid": 1}


@pytest.mark.parametrize(
    ("verdict", "found"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", {"FatalXid": 1}),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", {"FatalXid": 1}),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", {"FatalXid": 1}),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", {}),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", {}),
    ],
)
def test_the_drivers_own_verdict_counts_where_it_drains_the_node(
    node: Node, verdict: str, found: object
) -> None:
    node.says("journalctl", f"NVRM: Xid (PCI:0000:10:1c): 154, {verdict}\n")
    assert node.run("compute_node.py", "gpu").returncode == 0
    assert _problems(node) == found


@pytest.mark.skipif(
    float(Path("/proc/uptime").read_text().split()[0]) < 300, reason="this machine has just started"
)
def test_a_gpu_outside_the_fabric_counts(node: Node) -> None:
    node.says("nvidia-smi", gpu(0, 9, 1, rest="0x0, 0, 0, In Progress, N/A") + gpu(1, 9, 1))
    assert node.run("compute_node.py", "gpu").returncode == 0
    assert _problems(node) == {"FabricNotReady": 1}


def test_a_problem_that_cannot_be_counted_hides_no_other(node: Node) -> None:
    node.has("journalctl", "exit 1")
    node.says("nvidia-smi", gpu(0, 9, 1, rest="0x0, 0, 0, In Progress, N/A"))
    done = node.run("compute_node.py", "gpu")
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "FatalXid")
    assert "FabricNotReady" in _problems(node)


def test_with_text_files_the_rules_of_prometheus_report_problems(node: Node) -> None:
    node.says("journalctl", XID.format(79))
    node.run("compute_node.py", "gpu", "--textfiles", str(node.root / "files"))
    if (node.root / "data").exists():  # one run of four publishes
        assert _problems(node) == {}


@pytest.mark.parametrize("late", [0, 1], ids=["at once", "after the longest delay"])
def test_with_text_files_one_run_in_two_minutes_publishes(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
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


def test_the_limits_are_those_of_the_rules() -> None:
    rules = yaml.safe_load((ASSETS / "bootstrap" / "monitoring" / "rules.yml").read_text())
    named = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    limits: dict[str, float] = {}
    for line in (METRICS / "problems.py").read_text().splitlines():
        names, found, values = line.partition(" = ")
        if found and names.replace(", ", "").replace("_", "").isupper() and names != "IDLE_SINCE":
            limits |= zip(names.split(", "), map(float, values.split(", ")), strict=True)
    assert f"> {limits['NODE_OUT_S']:.0f}" in named["NodeOut"]["expr"]
    assert f"< {limits['IDLE_RATIO']:g}" in named["GpusIdleInJob"]["expr"]
    assert f"{limits['IDLE_S'] / 60:.0f}m" == named["GpusIdleInJob"]["for"]
    assert f"{limits['FABRIC_S'] / 60:.0f}m" == named["FabricNotReady"]["for"]
    assert f'database_queue"}} > {limits["BACKLOG"]:.0f}' in named["SchedulerBacklog"]["expr"]
    assert f'server_threads"}} > {limits["BACKLOG"]:.0f}' in named["SchedulerBacklog"]["expr"]
    assert f'cycle_seconds"}} > {limits["CYCLE_S"]:.0f}' in named["SchedulerBacklog"]["expr"]
    late = f"clamp_min({limits['STEPS']:.0f} * training_row_interval_seconds, {limits['NO_STEP_S']:.0f})"
    assert late in named["NoStep"]["expr"]
    assert {*JOB_PROBLEMS, *GPU_PROBLEMS} <= {*named}
