"""prolog.sh as Slurm runs it: it drains unhealthy nodes, updates old ones, drains none for its own faults."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, HealthNode, checks_version, smi


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

    def run_epilog(self) -> subprocess.CompletedProcess[str]:
        """Run the installed epilog as slurmd does."""
        epilog = self.path.parent.parent / "epilog.d" / self.path.name
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        unhurried = {"HEALTH_SETTLE_S": "0"}
        return subprocess.run(
            [str(epilog)], env=slurm | unhurried, capture_output=True, text=True, timeout=60
        )

    def judge_idle(self) -> subprocess.CompletedProcess[str]:
        """Judge the node as its timer does: without a job, and without Slurm's variables."""
        script = HEALTH / "judge-node.sh"
        environment = self.node.environment | {"HEALTH_SETTLE_S": "0"}
        environment["PATH"] = f"{self.node.programs}:{environment['PATH']}"
        return subprocess.run(
            ["bash", str(script), "idle"], env=environment, capture_output=True, text=True, timeout=60
        )

    def ship(self, bootstrap: str) -> None:
        """Let the node's bundle have this bootstrap.sh, beside the real checks."""
        mine = self.node.bundle / "bootstrap"
        mine.unlink()
        mine.mkdir()
        (mine / "health").symlink_to(HEALTH)
        (mine / "bootstrap.sh").write_text(bootstrap)

    def scontrol(self) -> list[str]:
        """Return the calls that change something."""
        return [line for line in self.node.called() if line.startswith("scontrol update")]


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
    (node.bundles / new / "bootstrap" / "health" / "judge-node.sh").write_text(
        (HEALTH / "judge-node.sh").read_text()
    )
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


def test_a_prolog_that_takes_all_its_limits_ends_before_slurm_gives_its_job_up() -> None:
    """It does after BatchStartTimeout, which ParallelCluster's slurm.conf sets to 180 s."""
    prolog, judge, check, drain = (
        (HEALTH.parent / name).read_text()
        for name in ("prolog.sh", "health/judge-node.sh", "health/check-node.sh", "health/drain_limit.sh")
    )

    def seconds(pattern: str, text: str) -> list[int]:
        found = re.findall(pattern, text, re.MULTILINE)
        assert found, pattern
        return [int(each) for each in found]

    limits = [seconds(r"LIMIT_S=(\d+)", check)[0]]
    for each in (HEALTH / "checks").glob("*.sh"):
        limits += map(int, re.findall(r"^# Limit: (\d+) s", each.read_text(), re.MULTILINE))
    worst_s = (
        sum(seconds(r"\b(?:REFRESH|LOCK)_S=(\d+)", prolog))
        + max(limits)
        + sum(seconds(r"limits\[\$name\]\} \+ (\d+)\)", check))
        + sum(seconds(r"HEALTH_SETTLE_S:-(\d+)", drain))
        + sum(seconds(r"timeout (\d+) scontrol", judge))
    )
    assert f"a job starts {worst_s} s later" in (HEALTH / "README.md").read_text()
    assert worst_s < 180


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
        (node.root / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
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
            (health / "judge-node.sh").write_text((HEALTH / "judge-node.sh").read_text())
    assert prolog.run().returncode == 0
    assert said in node.health_log()
    assert prolog.scontrol() == []


SICK = "unhealthy, drained: nvidia-smi lists 7 of 8 GPUs"
DRAINED = (
    "scontrol update nodename=gpu-dy-p4d-1 state=drain reason=training-cluster: nvidia-smi lists 7 of 8 GPUs"
)


def test_a_node_that_a_job_left_unhealthy_is_drained_at_once_by_the_epilog(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    assert prolog.run_epilog().returncode == 0
    assert prolog.scontrol() == [DRAINED]
    assert f"health: gpu-dy-p4d-1, after job 17: {SICK}\n" in prolog.node.health_log()


def test_a_node_that_a_job_left_healthy_stays(prolog: Prolog) -> None:
    done = prolog.run_epilog()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert prolog.node.health_log().endswith("health: gpu-dy-p4d-1, after job 17: healthy\n")
    assert prolog.scontrol() == []


def test_on_an_older_bundle_that_cannot_be_replaced_a_job_starts_unchecked_and_the_log_says_so(
    prolog: Prolog,
) -> None:
    prolog.ship("exit 1\n")
    health = prolog.node.bundle / "bootstrap" / "health"
    health.unlink()
    health.mkdir()
    (health / "check-node.sh").write_text("exit 9\n")
    assert prolog.run().returncode == 0
    assert "has no health/judge-node.sh: the job starts unchecked" in prolog.node.health_log()
    assert prolog.run_epilog().returncode == 0
    assert prolog.scontrol() == []


def test_an_epilog_without_a_bundle_drains_no_node(prolog: Prolog) -> None:
    (prolog.node.bundles / "current").unlink()
    assert prolog.run_epilog().returncode == 0
    assert prolog.scontrol() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", ["IDLE+CLOUD+DRAIN", "MIXED+CLOUD+DRAIN", "IDLE+CLOUD+POWERING_DOWN", "DOWN+CLOUD"]
)
def test_the_first_reason_of_a_node_that_leaves_already_stays(prolog: Prolog, state: str) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    prolog.node.stub("scontrol", f"echo 'NodeName=gpu-dy-p4d-1 Arch=x86_64 State={state} ThreadsPerCore=1'")
    assert prolog.run_epilog().returncode == 0
    assert prolog.scontrol() == []
    assert "unhealthy, not drained again: nvidia-smi lists 7 of 8 GPUs" in prolog.node.health_log()
    assert prolog.run().returncode == 1


@pytest.mark.parametrize("state", ["ALLOCATED+CLOUD", "IDLE+CLOUD", "MIXED+CLOUD+POWERING_UP"])
def test_a_node_in_service_is_drained(prolog: Prolog, state: str) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    prolog.node.stub("scontrol", f"echo 'NodeName=gpu-dy-p4d-1 Arch=x86_64 State={state} ThreadsPerCore=1'")
    assert prolog.run_epilog().returncode == 0
    assert prolog.scontrol() == [DRAINED]


def test_an_idle_node_is_judged_under_the_name_that_parallelcluster_gave_it(prolog: Prolog) -> None:
    node = prolog.node
    smi(node, gpus="list-gpus-7.txt")
    node.stub("pgrep", "exit 1")
    node.stub("hostname", "echo gpu-dy-p4d-1")
    assert prolog.judge_idle().returncode == 9
    assert prolog.scontrol() == [DRAINED]
    assert f"health: gpu-dy-p4d-1, idle: {SICK}\n" in node.health_log()
    named = node.root / "etc" / "parallelcluster" / "slurm_plugin" / "slurm_nodename"
    named.parent.mkdir()
    named.write_text("gpu-st-p4d-7\n")
    prolog.judge_idle()
    assert "nodename=gpu-st-p4d-7 " in prolog.scontrol()[-1]


def test_a_wrong_check_is_braked_without_a_job_too(prolog: Prolog) -> None:
    node = prolog.node
    smi(node, gpus="list-gpus-7.txt")
    node.stub("pgrep", "exit 1")
    node.stub("hostname", "echo gpu-dy-p4d-1")
    verdicts = node.root / "opt/slurm/etc/training-cluster-verdicts" / node.queue
    verdicts.mkdir(parents=True)
    for number in (2, 3):
        (verdicts / f"gpu-dy-p4d-{number}").write_text(f"{time.time():.0f} boot {checks_version()} 10-gpus\n")
    assert prolog.judge_idle().returncode == 0
    (call,) = prolog.scontrol()
    assert call.startswith("scontrol update nodename=gpu-dy-p4d-1 comment=training-cluster: braked at ")
    assert call.endswith(", idle: nvidia-smi lists 7 of 8 GPUs")


def test_a_node_with_a_job_is_not_idle(prolog: Prolog) -> None:
    smi(prolog.node, gpus="list-gpus-7.txt")
    prolog.node.stub("pgrep", "exit 0")
    assert prolog.judge_idle().returncode == 0
    assert prolog.scontrol() == []
    assert prolog.node.health_log() == ""
    assert "pgrep --full slurmstepd: \\[" in prolog.node.called()


def test_a_wrong_moment_is_refused(prolog: Prolog) -> None:
    script = ["bash", str(HEALTH / "judge-node.sh"), "sometimes"]
    done = subprocess.run(script, env=prolog.node.environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "judge-node.sh: the moment is sometimes; allowed: before, after, idle\n",
    )
