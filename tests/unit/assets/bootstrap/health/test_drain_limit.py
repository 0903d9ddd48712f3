"""The drain limit: a check that reports most nodes as unhealthy drains none; else it drains a node."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY
from tests.unit.assets.bootstrap.health.test_check_node import CheckedNode

SENTENCE, SCRATCH = "nvidia-smi lists 7 of 8 GPUs", "the local NVMe disks are not mounted on /scratch"
# A line of a node's verdicts: minutes ago, the checks' version, failed checks.
FIT, SICK = "1 now", "1 now 10-gpus"
CASES: tuple[tuple[Any, ...], ...] = (
    (False, SICK),
    (False, SICK, SICK),
    (True, SICK, SICK, SICK),
    (True, SICK, SICK, SICK, FIT, FIT),
    (False, SICK, SICK, SICK, FIT, FIT, FIT),
    (False, SICK, *["1 now 40-efa"] * 9),
    (True, SICK, *["1 now 40-efa 10-gpus"] * 2),
    (False, SICK, *["61 now 10-gpus"] * 2),
    (False, SICK, *["1 older 10-gpus"] * 4),
    # After a deploy most nodes are idle, and have passed the checks of the bundle before.
    (True, SICK, SICK, SICK, *["1 older"] * 20),
    # A sick machine that returns under the same name; a second name shows that the check is wrong.
    (False, ";".join([SICK] * 5), FIT),
    (True, f"{SICK};{SICK}", SICK),
)


def version_of(health: Path) -> str:
    """Return the version of a bundle's checks as drain_limit.sh writes it."""
    program = f"HERE={health}; TRAINING_ROOT=; source {health}/drain_limit.sh; version"
    return subprocess.check_output(["bash", "-c", program], text=True).strip()


def line_of(verdict: str, now: str) -> str:
    """Return a line of a node's file; `now` is the version of these checks."""
    minutes, version, *checks = verdict.split()
    at = time.time() - 60 * int(minutes)
    return f"{at:.0f} boot {version.replace('now', now)} {' '.join(checks)}\n"


def test_a_check_drains_until_most_are_unhealthy(tmp_path: Path) -> None:
    verdicts = tmp_path / "opt/slurm/etc/training-cluster-verdicts"
    now = version_of(HEALTH)
    for number, (_, *nodes) in enumerate(CASES):
        (verdicts / str(number)).mkdir(parents=True)
        for node, lines in enumerate(nodes):
            (verdicts / str(number) / f"node-{node}").write_text(
                "".join(line_of(line, now) for line in lines.split(";"))
            )
    script = f'HERE={HEALTH} TRAINING_ROOT={tmp_path}; source "$HERE/drain_limit.sh"\n'
    script += 'for ((i = 0; i < $1; i++)); do is_braked "$i" 10-gpus && echo True || echo False; done'
    command = ["bash", "-euc", script, "_", str(len(CASES))]
    found = subprocess.check_output(command, text=True).split()
    assert found == [str(is_braked) for is_braked, *_ in CASES]


class BrakedNode(CheckedNode):
    """One of three nodes of a partition, whose check 10-gpus finds the same before a job."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.verdicts = self.root / "opt/slurm/etc/training-cluster-verdicts"
        self.mine = self.verdicts / "gpu" / "gpu-dy-p4d-1"
        self.finds("10-gpus", SENTENCE)

    def others_are_sick(self) -> None:
        """Write the other nodes' verdicts of the checks that the bundle has."""
        for name in ("other-1", "other-2"):
            self.write(f"{self.verdicts}/gpu/{name}", line_of(SICK, version_of(self.health)))

    def judged(self) -> subprocess.CompletedProcess[str]:
        return self.check(SLURMD_NODENAME="gpu-dy-p4d-1", SLURM_JOB_ID="17", HEALTH_SETTLE_S="0")

    def noted(self) -> list[str]:
        """Return this node's own verdicts, without the time, the boot and the version."""
        return [" ".join(line.split()[3:]) for line in self.mine.read_text().splitlines()]


@pytest.fixture
def braked(tmp_path: Path) -> BrakedNode:
    return BrakedNode(tmp_path)


def test_a_brake_tells_how_to_loosen_it(braked: BrakedNode) -> None:
    """A boot counts once, in its last verdict. What another check finds is not hidden."""
    braked.others_are_sick()
    braked.mine.write_text(line_of("61 now 10-gpus", "x") + line_of("2 now 40-efa", "x"))
    done = braked.judged()
    assert (done.returncode, done.stdout, braked.noted()) == (0, SENTENCE, ["40-efa", "10-gpus"])
    assert (braked.verdicts / "gpu" / ".braked-10-gpus").exists(), "metrics count it"
    braked.finds("50-scratch", SCRATCH)
    braked.others_are_sick()
    done = braked.judged()
    assert (done.returncode, done.stdout) == (UNHEALTHY, f"{SCRATCH}\n")
    skipped = braked.root / "opt/slurm/etc/training-cluster-skipped-checks"
    assert "10-gpus: BRAKED: it reports most nodes of gpu as unhealthy" in done.stderr
    assert f"if it is wrong: echo 10-gpus | sudo tee -a {skipped}; " in done.stderr
    assert f"if it is right: sudo rm -r {braked.verdicts}/gpu\n" in done.stderr
    assert braked.noted() == ["40-efa", "10-gpus 50-scratch"]
    braked.mine.unlink()
    done = braked.check()
    assert (done.returncode, done.stderr) == (UNHEALTHY, ""), "a person is told all"
    assert SENTENCE in done.stdout
    assert not braked.mine.exists()


def test_verdicts_of_fit_nodes_count(braked: BrakedNode) -> None:
    """Without a folder of verdicts, a check drains."""
    braked.has("10-gpus", "")
    assert (braked.judged().returncode, braked.noted()) == (0, [""])
    braked.finds("10-gpus", SENTENCE)
    braked.mine.unlink()
    braked.mine.parent.rmdir()
    braked.mine.parent.write_text("no folder")
    done = braked.judged()
    assert (done.returncode, done.stdout) == (UNHEALTHY, f"{SENTENCE}\n")
    assert "no check is braked" in done.stderr
