"""The drain limit: a check that reports most nodes as unhealthy drains none; else it drains a node."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY, checks_version, gpu_node, smi

SENTENCE = "nvidia-smi lists 7 of 8 GPUs"
FIT, SICK = "", "10-gpus"


class BrakedNode:
    """One of several nodes of a partition, which finds seven of its eight GPUs before a job."""

    def __init__(self, root: Path) -> None:
        self.node = gpu_node(root)
        smi(self.node, gpus="list-gpus-7.txt")
        self.verdicts = self.node.root / "opt/slurm/etc/training-cluster-verdicts"
        self.mine = self.verdicts / self.node.queue / "gpu-dy-p4d-1"

    def others(self, *said: str, minutes_ago: float = 1, partition: str = "", version: str = "") -> None:
        """Write the verdicts of other nodes: for each the names of failed checks, or none."""
        folder = self.verdicts / (partition or self.node.queue)
        folder.mkdir(parents=True, exist_ok=True)
        begin = f"{time.time() - 60 * minutes_ago:.0f} boot {version or checks_version()}"
        for number, checks in enumerate(said):
            (folder / f"other-{version}{number}").write_text(f"{begin} {checks}\n")

    def check(self, **environment: str) -> subprocess.CompletedProcess[str]:
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "HEALTH_SETTLE_S": "0"}
        return subprocess.run(
            ["bash", str(HEALTH / "check-node.sh"), self.node.queue],
            env=self.node.environment | slurm | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def drains(self) -> bool:
        done = self.check()
        assert done.stdout.strip() == SENTENCE
        assert ("10-gpus: BRAKED" in done.stderr) is (done.returncode == 0)
        return done.returncode == UNHEALTHY

    def noted(self) -> list[str]:
        """Return this node's own verdicts, without the time, the boot and the version."""
        return [" ".join(line.split()[3:]) for line in self.mine.read_text().splitlines()]


@pytest.fixture
def braked(tmp_path: Path) -> BrakedNode:
    return BrakedNode(tmp_path)


@pytest.mark.parametrize(
    ("others", "drains"),
    [
        ([], True),
        ([SICK], True),
        ([SICK, SICK], False),
        ([SICK, SICK, FIT, FIT], False),
        ([SICK, SICK, FIT, FIT, FIT], True),
        (["40-efa"] * 9, True),
        (["40-efa 10-gpus"] * 2, False),
    ],
    ids=["alone", "two", "three", "three of five", "half", "other check", "both checks"],
)
def test_a_check_drains_until_most_are_unhealthy(braked: BrakedNode, others: list[str], drains: bool) -> None:
    braked.others(*others)
    assert braked.drains() is drains
    assert braked.noted() == ["10-gpus"]


def test_a_brake_tells_how_to_loosen_it(braked: BrakedNode) -> None:
    """The verdict of a fit node, and what another check finds, are not hidden."""
    smi(braked.node)
    assert (braked.check().returncode, braked.noted()) == (0, [""])
    smi(braked.node, gpus="list-gpus-7.txt")
    braked.others(SICK, SICK)
    braked.node.stub("mountpoint", "exit 32")
    done = braked.check()
    assert done.returncode == UNHEALTHY
    assert done.stdout.strip() == "the local NVMe disks are not mounted on /scratch"
    skipped = braked.node.root / "opt/slurm/etc/training-cluster-skipped-checks"
    assert f"10-gpus: BRAKED: it reports most nodes of {braked.node.queue} as unhealthy" in done.stderr
    assert f"if it is wrong: echo 10-gpus | sudo tee -a {skipped}; " in done.stderr
    assert f"if it is right: sudo rm -r {braked.verdicts}/gpu\n" in done.stderr
    assert braked.noted() == ["10-gpus 50-scratch"]
    braked.mine.unlink()
    done = braked.check(SLURMD_NODENAME="")
    assert (done.returncode, done.stderr) == (UNHEALTHY, ""), "a person is told all"
    assert SENTENCE in done.stdout
    assert not braked.mine.exists()


def test_old_and_foreign_verdicts_do_not_count(braked: BrakedNode) -> None:
    braked.others(SICK, SICK, minutes_ago=61)
    braked.others(*[SICK] * 4, partition="other")
    braked.others(*[SICK] * 4, version="older")
    assert braked.drains()
    # After a deploy most nodes are idle, and have passed the checks of the bundle before.
    braked.others(*[FIT] * 20, version="older")
    braked.others(*[FIT] * 9, partition="other")
    braked.others(SICK, SICK)
    assert not braked.drains()


def test_a_sick_machine_that_returns_brakes_nothing(braked: BrakedNode) -> None:
    """Replaced nodes count once a boot; a third verdict of two names shows that the check is wrong."""
    braked.others(FIT)
    line = f"{time.time():.0f} boot-{{}} {checks_version()} 10-gpus\n"
    braked.mine.write_text("".join(map(line.format, range(4))))
    assert braked.drains()
    assert braked.noted() == ["10-gpus"] * 5
    braked.mine.unlink()
    other = braked.verdicts / braked.node.queue / "other-0"
    other.write_text(line.format(1))
    assert [braked.drains() for _ in range(2)] == [True, True]
    other.write_text(line.format(1) + line.format(2))
    assert not braked.drains()


def test_without_verdicts_nodes_drain(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    folder = braked.verdicts / braked.node.queue
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("no folder")
    done = braked.check()
    assert done.returncode == UNHEALTHY
    assert "no check is braked" in done.stderr


def test_the_prolog_comments_on_a_braked_node(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    node = braked.node
    node.stub("scontrol")
    slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "HEALTH_SETTLE_S": "0"}
    done = subprocess.run([str(node.install_prolog())], env=slurm, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    log = node.health_log()
    assert f"job 17: UNHEALTHY, not drained: the same is reported of most nodes: {SENTENCE}\n" in log
    assert "10-gpus: BRAKED" in log
    (call,) = [line for line in node.called() if line.startswith("scontrol update")]
    assert call.startswith("scontrol update nodename=gpu-dy-p4d-1 comment=training-cluster: braked at 20")
    assert call.endswith(f", job 17: {SENTENCE}")
    assert (braked.verdicts / node.queue / ".braked-10-gpus").exists(), "metrics count it"
