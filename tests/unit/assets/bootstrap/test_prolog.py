"""prolog.sh as Slurm runs it: it drains unhealthy nodes, updates old ones, drains none for its own faults."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, HealthNode, smi


class Prolog:
    """The installed prolog on a node, and its calls of Slurm's commands."""

    def __init__(self, root: Path) -> None:
        self.node = HealthNode(root)
        self.node.be_well()
        smi(self.node)
        self.path = self.node.install_prolog()
        self.node.stub("scontrol", "")

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run it as slurmd does: with its own variables and nothing else."""
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        unhurried = {"HEALTH_SETTLE_S": "0"}
        return subprocess.run(
            [str(self.path)], env=slurm | unhurried, capture_output=True, text=True, timeout=60
        )

    def ship(self, bootstrap: str) -> None:
        """Let the node's bundle have this bootstrap.sh, beside the real checks."""
        mine = self.node.bundle / "bootstrap"
        mine.unlink()
        mine.mkdir()
        (mine / "health").symlink_to(HEALTH)
        (mine / "bootstrap.sh").write_text(bootstrap)

    def scontrol(self) -> list[str]:
        return [line for line in self.node.called() if line.startswith("scontrol")]


@pytest.fixture
def prolog(tmp_path: Path) -> Prolog:
    return Prolog(tmp_path)


def test_on_a_fit_node_the_prolog_passes(prolog: Prolog) -> None:
    done = prolog.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert prolog.node.health_log().endswith("health: gpu-dy-p4d-1, job 17: healthy\n")
    assert prolog.scontrol() == []


def test_an_unhealthy_node_is_drained_with_the_reason(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    assert prolog.run().returncode == 1
    reason = "training-cluster: nvidia-smi lists 7 of 8 GPUs"
    assert prolog.scontrol() == [f"scontrol update nodename=gpu-dy-p4d-1 state=drain reason={reason}"]
    assert "unhealthy, drained: nvidia-smi lists 7 of 8 GPUs" in prolog.node.health_log()


def test_a_node_that_slurm_does_not_let_drain_still_refuses_the_job(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    prolog.node.stub("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert prolog.run().returncode == 1
    assert "scontrol failed" in prolog.node.health_log()


@pytest.mark.slow
def test_a_node_that_missed_an_update_is_brought_up_to_date_before_it_is_checked(prolog: Prolog) -> None:
    node, new = prolog.node, "b" * 64
    node.want(new)
    script = f'echo "bootstrap $* $NODE_TYPE" >>"{node.calls}"; ln -sfn {new} "$TRAINING_BUNDLES/current"'
    prolog.ship(script)
    (node.bundles / new / "bootstrap" / "health").mkdir(parents=True)
    (node.bundles / new / "bootstrap" / "health" / "check-node.sh").write_text("echo new rule; exit 9\n")
    assert prolog.run().returncode == 1
    assert "bootstrap s3://bucket/bootstrap/training ComputeFleet" in "\n".join(node.called())
    assert "runs the new bundle" in node.health_log()
    assert "unhealthy, drained: new rule" in node.health_log()


@pytest.mark.slow
def test_a_refresh_that_hangs_is_ended_with_all_that_it_started_and_not_tried_at_each_job(
    prolog: Prolog,
) -> None:
    node, new = prolog.node, "b" * 64
    node.want(new)
    left = node.calls.parent / "left-running"
    prolog.ship(f"timeout 60 bash -c 'sleep 4; touch {left}' | cat\n")
    text = prolog.path.read_text()
    prolog.path.write_text(text.replace("REFRESH_S=30", "REFRESH_S=1"))
    assert prolog.run().returncode == 0
    assert "the bootstrap failed" in node.health_log()
    time.sleep(4)
    assert not left.exists()
    assert prolog.run().returncode == 0
    assert "failed here in the last 15 min" in node.health_log()


def test_a_node_of_the_right_bundle_runs_no_bootstrap(prolog: Prolog) -> None:
    prolog.node.stub("flock", "exit 1")
    prolog.run()
    assert [line for line in prolog.node.called() if line.startswith("flock")] == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no bundle", "has no health/check-node.sh: the job starts unchecked"),
        ("no config", "names no bundle"),
        ("no arguments", "bootstrap-arguments is missing: continues with"),
        ("no bucket", "the bootstrap failed (see the lines above): continues with"),
        ("no partition", "the checks themselves failed (1): the job starts unchecked"),
        ("a broken check", "the checks themselves failed (2): the job starts unchecked"),
    ],
)
def test_what_is_wrong_on_all_nodes_at_once_drains_none(prolog: Prolog, fault: str, said: str) -> None:
    node = prolog.node
    if fault == "no bundle":
        (node.bundles / "current").unlink()
    elif fault == "no config":
        (node.slash / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
    elif fault == "no arguments":
        node.want("b" * 64)
        (node.etc / "bootstrap-arguments").unlink()
    elif fault == "no partition":
        (node.etc / "partitions" / f"{node.queue}.env").unlink()
    else:
        prolog.ship("echo gave up on s3://bucket >&2; exit 1\n")
        node.want("b" * 64)
        if fault == "a broken check":
            health = node.bundle / "bootstrap" / "health"
            health.unlink()
            health.mkdir()
            (health / "check-node.sh").write_text("if then\n")
    assert prolog.run().returncode == 0
    assert said in node.health_log()
    assert prolog.scontrol() == []
