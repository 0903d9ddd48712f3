"""prolog.sh as Slurm runs it: it drains unhealthy nodes, updates old ones, drains none for its own faults."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, HealthNode, checks_version, smi

NEW = "b" * 64
SICK = "unhealthy, drained: nvidia-smi lists 7 of 8 GPUs"
NAME = "gpu-dy-p4d-1"
DRAINED = f"scontrol update nodename={NAME} state=drain reason=training-cluster: nvidia-smi lists 7 of 8 GPUs"


class Prolog:
    """The installed prolog on a node, and its calls of Slurm's commands."""

    def __init__(self, root: Path) -> None:
        self.node = HealthNode(root)
        self.node.be_well()
        smi(self.node)
        self.path = self.node.install_prolog()
        self.node.stub("scontrol")

    def run(self, moment: str = "prolog") -> int:
        """Run it or the epilog as slurmd does: with its own variables and nothing else."""
        program = self.path.parent.parent / f"{moment}.d" / self.path.name
        slurm = {"SLURMD_NODENAME": NAME, "SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        environment = slurm | {"HEALTH_SETTLE_S": "0"}
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
        assert done.stdout == ""
        return done.returncode

    def judge(self, moment: str = "idle") -> subprocess.CompletedProcess[str]:
        """Judge the node as its timer does: without a job, and without Slurm's variables."""
        environment = self.node.environment | {"HEALTH_SETTLE_S": "0"}
        environment["PATH"] = f"{self.node.programs}:{environment['PATH']}"
        command = ["bash", str(HEALTH / "judge-node.sh"), moment]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def lose_a_gpu(self) -> None:
        smi(self.node, gpus="list-gpus-7.txt")

    def ship(self, bootstrap: str, **health: str) -> None:
        """Let the node's bundle have this bootstrap.sh, and the real checks or these."""
        mine = self.node.bundle / "bootstrap"
        mine.unlink()
        mine.mkdir()
        (mine / "bootstrap.sh").write_text(bootstrap)
        if not health:
            (mine / "health").symlink_to(HEALTH)
            return
        (mine / "health").mkdir()
        for name, text in health.items():
            (mine / "health" / f"{name}-node.sh").write_text(text)

    def changes(self) -> list[str]:
        """Return the calls that change something in Slurm."""
        return [line for line in self.node.called() if line.startswith("scontrol update")]


@pytest.fixture
def prolog(tmp_path: Path) -> Prolog:
    return Prolog(tmp_path)


def test_a_fit_node_takes_its_job(prolog: Prolog) -> None:
    """On the right bundle, no bootstrap runs."""
    prolog.node.stub("flock", "exit 1")
    assert (prolog.run(), prolog.run("epilog")) == (0, 0)
    log = prolog.node.health_log().splitlines()
    assert log[0].endswith(f"health: {NAME}, job 17: healthy")
    assert log[-1].endswith(f"health: {NAME}, after job 17: healthy")
    assert prolog.changes() == []
    assert [line for line in prolog.node.called() if line.startswith("flock")] == []


def test_an_unhealthy_node_is_drained(prolog: Prolog) -> None:
    prolog.lose_a_gpu()
    assert (prolog.run(), prolog.changes()) == (1, [DRAINED])
    assert f"health: {NAME}, job 17: {SICK}\n" in prolog.node.health_log()
    assert (prolog.run("epilog"), prolog.changes()) == (0, [DRAINED] * 2)
    assert f"health: {NAME}, after job 17: {SICK}\n" in prolog.node.health_log()
    prolog.node.stub("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert prolog.run() == 1, "the job starts elsewhere all the same"
    assert "scontrol failed" in prolog.node.health_log()


def test_a_leaving_node_keeps_its_first_reason(prolog: Prolog) -> None:
    prolog.lose_a_gpu()
    for state, is_drained in {
        "IDLE+CLOUD+DRAIN": False,
        "IDLE+CLOUD+POWERING_DOWN": False,
        "DOWN+CLOUD": False,
        "ALLOCATED+CLOUD": True,
        "MIXED+CLOUD+POWERING_UP": True,
    }.items():
        before = len(prolog.changes())
        prolog.node.stub("scontrol", f"echo 'NodeName={NAME} Arch=x86_64 State={state} ThreadsPerCore=1'")
        assert prolog.run("epilog") == 0
        assert len(prolog.changes()) - before == is_drained, state
    assert "unhealthy, not drained again: nvidia-smi lists 7 of 8 GPUs" in prolog.node.health_log()


def test_a_missed_update_comes_before_the_checks(prolog: Prolog) -> None:
    node = prolog.node
    node.want(NEW)
    prolog.ship(f'echo "$* $NODE_TYPE" >>"{node.folder}/ran"; ln -sfn {NEW} "$TRAINING_BUNDLES/current"')
    health = node.bundles / NEW / "bootstrap" / "health"
    health.mkdir(parents=True)
    (health / "check-node.sh").write_text("echo new rule; exit 9\n")
    (health / "judge-node.sh").write_text((HEALTH / "judge-node.sh").read_text())
    assert prolog.run() == 1
    assert (node.folder / "ran").read_text() == "s3://bucket/bootstrap/training ComputeFleet\n"
    assert "runs the new bundle" in node.health_log()
    assert "unhealthy, drained: new rule" in node.health_log()


@pytest.mark.slow
def test_a_refresh_that_hangs_is_ended(prolog: Prolog) -> None:
    """With all that it started."""
    left = prolog.node.folder / "left-running"
    prolog.node.want(NEW)
    prolog.ship(f"timeout 60 bash -c 'sleep 4; touch {left}' | cat\n")
    prolog.path.write_text(prolog.path.read_text().replace("REFRESH_S=30", "REFRESH_S=1"))
    assert prolog.run() == 0
    assert "the bootstrap failed" in prolog.node.health_log()
    time.sleep(4)
    assert not left.exists()


def test_a_prolog_ends_before_its_job_does() -> None:
    """Slurm gives a job up after BatchStartTimeout, which ParallelCluster's slurm.conf sets to 180 s."""
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


@pytest.mark.parametrize(
    ("fault", "output"),
    [
        ("no bundle", "has no health/check-node.sh: the job starts unchecked"),
        ("an older bundle", "has no health/judge-node.sh: the job starts unchecked"),
        ("no config", "names no bundle"),
        ("no arguments", "bootstrap-arguments is missing: continues with"),
        ("no bucket", "the bootstrap failed (see the lines above): continues with"),
        ("no partition", "the checks themselves failed (1): the job starts unchecked"),
        ("a broken check", "the checks themselves failed (2): the job starts unchecked"),
    ],
)
def test_what_is_wrong_everywhere_drains_none(prolog: Prolog, fault: str, output: str) -> None:
    node = prolog.node
    if fault == "no bundle":
        (node.bundles / "current").unlink()
    elif fault == "an older bundle":
        prolog.ship("exit 1\n", check="exit 9\n")
    elif fault == "no config":
        (node.root / "opt" / "parallelcluster" / "shared" / "cluster-config.yaml").unlink()
    elif fault == "no arguments":
        node.want(NEW)
        (node.etc / "bootstrap-arguments").unlink()
    elif fault == "no partition":
        (node.etc / "partitions" / f"{node.queue}.env").unlink()
    elif fault == "no bucket":
        node.want(NEW)
        prolog.ship("echo gave up on s3://bucket >&2; exit 1\n")
    else:
        judge = (HEALTH / "judge-node.sh").read_text()
        prolog.ship("exit 1\n", check="if then\n", judge=judge)
    assert prolog.run() == 0
    assert output in node.health_log()
    if fault == "no bucket":
        assert prolog.run() == 0
        assert "failed here in the last 15 min" in node.health_log(), "not at each job"
    assert prolog.run("epilog") == 0
    assert prolog.changes() == []


@pytest.mark.parametrize("moment", ["prolog", "epilog"])
def test_no_root_of_a_rehearsal_drains_none(tmp_path: Path, moment: str) -> None:
    """On AWS TRAINING_ROOT is empty, for which step 90 writes no line."""
    done = subprocess.run(
        ["/bin/bash", str(HEALTH.parent / f"{moment}.sh")],
        env={"TRAINING_BUNDLES": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_idle_node_is_judged_by_its_name(prolog: Prolog) -> None:
    """As ParallelCluster gave it; a wrong check is braked without a job, too."""
    node = prolog.node
    prolog.lose_a_gpu()
    node.stub("pgrep")
    assert (prolog.judge().returncode, prolog.changes(), node.health_log()) == (0, [], ""), "it has a job"
    assert "pgrep --full slurmstepd: \\[" in node.called()
    node.stub("pgrep", "exit 1")
    node.stub("hostname", f"echo {NAME}")
    assert (prolog.judge().returncode, prolog.changes()) == (9, [DRAINED])
    assert f"health: {NAME}, idle: {SICK}\n" in node.health_log()
    node.write("etc/parallelcluster/slurm_plugin/slurm_nodename", "gpu-st-p4d-7\n")
    prolog.judge()
    assert "nodename=gpu-st-p4d-7 " in prolog.changes()[-1]
    verdicts = node.root / "opt/slurm/etc/training-cluster-verdicts" / node.queue
    for number in (2, 3):
        (verdicts / f"gpu-dy-p4d-{number}").write_text(f"{time.time():.0f} boot {checks_version()} 10-gpus\n")
    assert prolog.judge().returncode == 0
    assert "comment=training-cluster: braked at " in prolog.changes()[-1]
    assert prolog.changes()[-1].endswith(", idle: nvidia-smi lists 7 of 8 GPUs")


def test_a_wrong_moment_is_refused(prolog: Prolog) -> None:
    done = prolog.judge("sometimes")
    message = "judge-node.sh: the moment is sometimes; allowed: before, after, idle\n"
    assert (done.returncode, done.stderr) == (1, message)
