"""prolog.sh as Slurm runs it: it judges nodes, updates old ones, drains none for its own faults."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, HealthNode

NEW = "b" * 64


class Prolog:
    """The installed prolog on a node whose bundle has these tests' bootstrap.sh and judge-node.sh."""

    def __init__(self, root: Path) -> None:
        self.node = HealthNode(root)
        self.path = self.node.install_prolog()
        (self.node.bundle / "bootstrap").unlink()
        self.ship()

    def ship(self, bootstrap: str = "exit 1", *, judge: str = "exit 0", digest: str = "") -> None:
        """Put a bundle on the node."""
        mine = (self.node.bundles / digest if digest else self.node.bundle) / "bootstrap"
        (mine / "health").mkdir(parents=True, exist_ok=True)
        (mine / "bootstrap.sh").write_text(bootstrap)
        noted = f'echo "$* $SLURMD_NODENAME" >>"{self.node.folder}/judged"'
        (mine / "health" / "judge-node.sh").write_text(f"{noted}\n{judge}\n")
        (mine / "health" / "check-node.sh").touch()

    def run(self, moment: str = "prolog") -> int:
        """Run it or the epilog as slurmd does: with its own variables and nothing else."""
        program = self.path.parent.parent / f"{moment}.d" / self.path.name
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "SLURM_JOB_PARTITION": "other"}
        slurm["SLURM_JOB_UID"] = str(os.getuid())
        done = subprocess.run([program], env=slurm, capture_output=True, text=True, timeout=60)
        assert done.stdout == ""
        return done.returncode

    def judged(self) -> list[str]:
        """Return the arguments of each call of judge-node.sh, with the node's name."""
        return (self.node.folder / "judged").read_text().splitlines()


@pytest.fixture
def prolog(tmp_path: Path) -> Prolog:
    return Prolog(tmp_path)


def test_an_ended_jobs_containers_are_removed(prolog: Prolog) -> None:
    """Of a cancelled job, too; those that the user made stay."""
    listed = r"printf 'pyxis_train-%s-0\n' 17 16; echo mine; echo pyxis_train-mine"
    prolog.node.stub(
        "enroot", f'if [[ $1 == list ]]; then {listed}; else echo "$*" >>{prolog.node.folder}/removed; fi'
    )
    assert (prolog.run(), prolog.run("epilog")) == (0, 0)
    assert (
        prolog.node.folder / "removed"
    ).read_text() == "remove --force pyxis_train-17-0 pyxis_train-16-0\n"


def test_only_an_unhealthy_node_is_refused(prolog: Prolog) -> None:
    """On the right bundle, no bootstrap runs."""
    prolog.node.stub("flock", "exit 1")
    for judge, status in (("exit 0", 0), ("exit 9", 1), ("exit 2", 0)):
        prolog.ship(judge=judge)
        assert (prolog.run(), prolog.run("epilog")) == (status, 0)
    assert prolog.judged() == ["before gpu-dy-p4d-1", "after gpu-dy-p4d-1"] * 3
    assert (prolog.node.health_log(), prolog.node.called()) == ("", [])


def test_a_missed_update_comes_before_the_checks(prolog: Prolog) -> None:
    node = prolog.node
    node.want(NEW)
    prolog.ship(f'echo "$* $NODE_TYPE" >>"{node.folder}/ran"; ln -sfn {NEW} "$TRAINING_BUNDLES/current"')
    prolog.ship(judge="exit 9", digest=NEW)
    assert prolog.run() == 1
    assert (node.folder / "ran").read_text() == "s3://bucket/bootstrap/training ComputeFleet\n"
    assert "runs the new bundle" in node.health_log()


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
        sum(seconds(r"\b(?:REFRESH|LOCK|PEERS)_S=(\d+)", prolog))
        + max(limits)
        + sum(seconds(r"limits\[\$name\]\} \+ (\d+)\)", check))
        + sum(seconds(r"HEALTH_SETTLE_S:-(\d+)", drain))
        + sum(seconds(r"timeout (\d+) scontrol", judge))
    )
    assert f"a job starts {worst_s} s later" in (HEALTH / "README.md").read_text()
    assert worst_s < 180


def test_what_is_wrong_everywhere_drains_none(prolog: Prolog) -> None:
    node = prolog.node
    arguments, config = (
        node.etc / "bootstrap-arguments",
        node.root / "opt/parallelcluster/shared/cluster-config.yaml",
    )
    health = node.bundle / "bootstrap" / "health"
    node.want(NEW)
    prolog.ship("echo gave up on s3://bucket >&2; exit 1\n")
    for fault, output in (
        (None, "the bootstrap failed (see the lines above): continues with"),
        (None, "failed here in the last 15 min"),  # not at each job
        (arguments, "bootstrap-arguments is missing: continues with"),
        (config, "names no bundle"),
        (health / "judge-node.sh", "has no health/judge-node.sh: the job starts unchecked"),
        (health / "check-node.sh", "has no health/check-node.sh: the job starts unchecked"),
        (node.bundles / "current", "has no health/check-node.sh: the job starts unchecked"),
    ):
        if fault:
            fault.unlink()
        assert (prolog.run(), prolog.run("epilog")) == (0, 0)
        assert output in node.health_log().splitlines()[-1]
    assert len(prolog.judged()) == 2 * 4


def test_no_root_of_a_rehearsal_drains_none(tmp_path: Path) -> None:
    """On AWS TRAINING_ROOT is empty, for which step 90 writes no line."""
    for moment in ("prolog", "epilog"):
        command, bundles = (
            ["/bin/bash", str(HEALTH.parent / f"{moment}.sh")],
            {"TRAINING_BUNDLES": str(tmp_path)},
        )
        done = subprocess.run(command, env=bundles, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
