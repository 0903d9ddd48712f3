"""Steps 85 to 88 with another store than CloudWatch: units, configs, and what a change back removes."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import STEPS, Node
from training_cluster.catalog.steps import load_steps, start_steps
from training_cluster.paths import ASSETS, ROOT

PROGRAMS = ROOT / ".cache" / "prometheus" / "usr" / "bin"
UNITS, PROLOGS = "etc/systemd/system", "opt/slurm/etc/scripts"
WORKSPACE = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1"


class Exporting(Node):
    """A node whose packages are installed, with the real promtool and amtool."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for program in ("systemctl", "prometheus", "prometheus-node-exporter", "prometheus-alertmanager"):
            self.stub(program)
        self.stub("ip", "echo '192.0.2.1 via 10.0.0.1 dev ens5 src 10.0.1.7 uid 0'")
        self.stub("install")  # as the user prometheus, who is not here
        self.stub("chown")
        for program in ("promtool", "amtool"):
            (self.programs / program).symlink_to(PROGRAMS / program)
        self.write(
            "etc/parallelcluster/cfnconfig",
            "stack_name=training\ncfn_region=us-east-1\ncfn_scheduler_queue_name=gpu\n",
        )
        (self.etc / "partitions" / "gpu.env").write_text("ACCELERATOR_KIND=gpu\n")
        (self.etc / "bootstrap-arguments").write_text("s3://bucket/bootstrap/training\n")

    def step(self, number: str, node_type: str = "HeadNode", **variables: str) -> str:
        done = self.run(
            number,
            node_type=node_type,
            TRAINING_STATE=str(self.slash / "var/lib/training-cluster"),
            **{"METRICS": "prometheus", **variables},
        )
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def node(tmp_path: Path) -> Exporting:
    return Exporting(tmp_path)


def test_only_another_store_runs_the_steps_and_costs_time() -> None:
    steps = {step.name: step for step in load_steps() if step.name[:2] in ("86", "87", "88")}
    assert len(steps) == 3
    for step in steps.values():
        assert step.metrics == {"prometheus", "amp"}
    names = {step.name for step in start_steps(node="HeadNode", recipe="cpu", metrics="amp")}
    assert names - {step.name for step in start_steps(node="HeadNode", recipe="cpu")} == set(steps)


def test_a_compute_node_serves_on_its_first_address_alone(node: Exporting) -> None:
    node.step("86", "ComputeFleet")
    unit = node.text(f"{UNITS}/training-cluster-node-exporter.service")
    assert "--web.listen-address=10.0.1.7:9100" in unit
    assert "User=prometheus" in unit
    assert not (node.slash / PROLOGS).exists()
    calls = node.calls()
    assert "systemctl enable --now training-cluster-node-exporter.service" in calls
    assert not [call for call in calls if call.startswith("prometheus-node-exporter")]


def test_a_waiting_job_waits_for_no_package(node: Exporting) -> None:
    (node.programs / "prometheus-node-exporter").unlink()
    said = node.step("86", "ComputeFleet", MOMENT="refresh")
    assert "the next node that starts has the exporter" in said
    assert not (node.slash / UNITS).exists()


def test_the_head_node_serves_to_itself_and_installs_both_job_files(node: Exporting) -> None:
    node.step("86")
    assert "--web.listen-address=127.0.0.1:9100" in node.text(
        f"{UNITS}/training-cluster-node-exporter.service"
    )
    for moment in ("prolog", "epilog"):
        file = node.slash / PROLOGS / f"{moment}.d" / "20-training-cluster-metrics"
        assert file.stat().st_mode & 0o111
        assert f"readonly MOMENT={moment}\n" in file.read_text()
    files = node.files()
    node.calls()
    node.step("86")
    assert node.files() == files
    assert not [call for call in node.calls() if "restart" in call]


def test_every_flag_of_the_exporter_is_one_it_has(node: Exporting) -> None:
    node.step("86", "ComputeFleet")
    unit = node.text(f"{UNITS}/training-cluster-node-exporter.service")
    known = subprocess.run(
        [PROGRAMS / "prometheus-node-exporter", "--help"], capture_output=True, text=True, check=False
    )
    flags = set(re.findall(r"--([a-z.-]+)", unit))
    assert flags <= set(re.findall(r"--(?:\[no-\])?([a-z.-]+)", known.stdout + known.stderr)), flags


@pytest.mark.parametrize("program", ["prometheus", "prometheus-alertmanager"])
def test_every_flag_of_a_daemon_is_one_it_has(node: Exporting, program: str) -> None:
    node.stub("aws", "echo https://hooks.example.com/x")
    node.step("87")
    node.step("88", METRICS_WEBHOOK_SECRET="arn:x")
    name = program.rpartition("-")[2]
    unit = node.text(f"{UNITS}/training-cluster-{name}.service")
    known = subprocess.run([PROGRAMS / program, "--help"], capture_output=True, text=True, check=False)
    flags = set(re.findall(r"--([a-z.-]+)", unit))
    assert flags
    assert flags <= set(re.findall(r"--(?:\[no-\])?([a-z.-]+)", known.stdout + known.stderr)), flags


def test_prometheus_keeps_fifteen_days_in_a_bound_that_stays(node: Exporting) -> None:
    node.stub("df", "echo Avail; echo 40")
    node.step("87")
    unit = node.text(f"{UNITS}/training-cluster-prometheus.service")
    assert "--storage.tsdb.retention.time=15d --storage.tsdb.retention.size=10GB" in unit
    assert "--web.listen-address=127.0.0.1:9090" in unit
    node.stub("df", "echo Avail; echo 2")
    node.step("87")
    assert node.text(f"{UNITS}/training-cluster-prometheus.service") == unit


@pytest.mark.parametrize(("free", "bound"), [(1, 1), (40, 10), (900, 16)])
def test_the_bound_is_a_quarter_of_what_is_free(node: Exporting, free: int, bound: int) -> None:
    node.stub("df", f"echo Avail; echo {free}")
    node.step("87")
    assert f"size={bound}GB" in node.text(f"{UNITS}/training-cluster-prometheus.service")


def test_a_workspace_gets_the_metrics_and_the_head_node_keeps_a_day(node: Exporting) -> None:
    node.step("87", METRICS="amp", METRICS_WORKSPACE=WORKSPACE)
    assert "retention.time=1d" in node.text(f"{UNITS}/training-cluster-prometheus.service")
    assert f'url: "{WORKSPACE}/api/v1/remote_write"' in (node.etc / "prometheus/prometheus.yml").read_text()


def test_without_an_address_no_alertmanager_runs(node: Exporting) -> None:
    node.step("88")
    assert not (node.slash / UNITS).exists()


def test_the_webhooks_address_is_for_alertmanager_alone(node: Exporting) -> None:
    node.stub("aws", "echo https://hooks.example.com/secret")
    node.step("88", METRICS_WEBHOOK_SECRET="arn:aws:secretsmanager:us-east-1:123456789012:secret:a")
    file = node.etc / "alertmanager" / "webhook"
    assert file.read_text() == "https://hooks.example.com/secret"
    assert file.stat().st_mode & 0o077 == 0
    assert "hooks.example.com" not in (node.etc / "alertmanager/alertmanager.yml").read_text()
    assert "hooks.example.com" not in "\n".join(node.calls())


def test_the_timer_writes_text_files_twice_a_minute(node: Exporting) -> None:
    node.step("85", METRICS_BUDGET_USD="500")
    service = node.text(f"{UNITS}/training-cluster-metrics.service")
    for words in ("--textfiles", "--targets", "--budget-usd 500", "/fsx/runs", "TimeoutStartSec=28"):
        assert words in service, words
    assert "OnCalendar=*:*:0/30" in node.text(f"{UNITS}/training-cluster-metrics.timer")
    node.step("85", "ComputeFleet")
    assert "compute_node.py gpu" in node.text(f"{UNITS}/training-cluster-metrics.service")


def test_a_change_back_stops_and_removes_all_of_it(node: Exporting) -> None:
    node.step("86")
    node.step("87")
    node.calls()
    node.step("85", METRICS="cloudwatch")
    calls = node.calls()
    for unit in ("node-exporter", "prometheus"):
        assert f"systemctl disable --now training-cluster-{unit}.service" in calls
    left = [path.name for path in (node.slash / UNITS).iterdir()]
    assert sorted(left) == [
        f"training-cluster-{name}.{kind}" for name in ("follow", "metrics") for kind in ("service", "timer")
    ]
    assert not list((node.slash / PROLOGS).rglob("*training-cluster-metrics"))
    assert "--textfiles" not in node.text(f"{UNITS}/training-cluster-metrics.service")


def test_the_steps_run_only_with_their_store(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "bootstrap" / "steps").mkdir(parents=True)
    (bundle / "bootstrap" / "run-steps.sh").write_text((ASSETS / "bootstrap/run-steps.sh").read_text())
    (bundle / "versions.env").write_text("")
    header = "".join(
        f"# {name}: {value}\n"
        for name, value in {
            "Moment": "start",
            "Recipes": "all",
            "Nodes": "all",
            "Where": "any",
            "Required": "no",
            "Budget": "5 s",
            "Metrics": "prometheus amp",
        }.items()
    )
    (bundle / "bootstrap/steps/86-x.sh").write_text(f"#!/bin/bash\n{header}")
    ran = {}
    for store in ("", "cloudwatch", "prometheus", "amp"):
        (bundle / "metrics.env").unlink(missing_ok=True)
        if store:
            (bundle / "metrics.env").write_text(f"export METRICS='{store}'\n")
        done = subprocess.run(
            ["bash", str(bundle / "bootstrap/run-steps.sh"), "start"],
            env={"PATH": "/usr/bin:/bin", "NODE_TYPE": "HeadNode", "TRAINING_ROOT": str(tmp_path / "root")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        ran[store] = "86-x: done" in done.stdout
    assert ran == {"": False, "cloudwatch": False, "prometheus": True, "amp": True}


def test_no_step_of_a_store_is_in_an_image() -> None:
    for step in load_steps():
        if step.metrics != {"cloudwatch", "prometheus", "amp"}:
            assert step.moment == "start"
            assert step.path.parent == STEPS
