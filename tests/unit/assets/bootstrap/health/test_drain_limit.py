"""The drain limit: a check that reports most nodes as unhealthy drains none; else it drains a node."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY, checks_version, gpu_node, smi

SENTENCE = "nvidia-smi lists 7 of 8 GPUs"
# A line of a node's verdicts: minutes ago, the checks' version, failed checks.
FIT, SICK = "1 now", "1 now 10-gpus"
CASES = (
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


def line_of(verdict: str) -> str:
    minutes, version, *checks = verdict.split()
    at = time.time() - 60 * int(minutes)
    return f"{at:.0f} boot {version.replace('now', checks_version())} {' '.join(checks)}\n"


def test_a_check_drains_until_most_are_unhealthy(tmp_path: Path) -> None:
    verdicts = tmp_path / "opt/slurm/etc/training-cluster-verdicts"
    for number, (_, *nodes) in enumerate(CASES):
        (verdicts / str(number)).mkdir(parents=True)
        for node, lines in enumerate(nodes):
            (verdicts / str(number) / f"node-{node}").write_text("".join(map(line_of, lines.split(";"))))
    script = f'HERE={HEALTH} TRAINING_ROOT={tmp_path}; source "$HERE/drain_limit.sh"\n'
    script += 'for ((i = 0; i < $1; i++)); do is_braked "$i" 10-gpus && echo True || echo False; done'
    command = ["bash", "-euc", script, "_", str(len(CASES))]
    found = subprocess.check_output(command, text=True).split()
    assert found == [str(is_braked) for is_braked, *_ in CASES]


class BrakedNode:
    """One of three nodes of a partition, which find seven of their eight GPUs before a job."""

    def __init__(self, root: Path) -> None:
        self.node = gpu_node(root)
        self.verdicts = self.node.root / "opt/slurm/etc/training-cluster-verdicts"
        self.folder = self.verdicts / self.node.queue
        self.mine = self.folder / "gpu-dy-p4d-1"
        self.folder.mkdir(parents=True)
        for name in ("other-1", "other-2"):
            (self.folder / name).write_text(line_of(SICK))

    def check(self, *, gpus: int = 7, **environment: str) -> subprocess.CompletedProcess[str]:
        smi(self.node, gpus=gpus)
        slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "HEALTH_SETTLE_S": "0"}
        return subprocess.run(
            ["bash", str(HEALTH / "check-node.sh"), self.node.queue],
            env=self.node.environment | slurm | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def noted(self) -> list[str]:
        """Return this node's own verdicts, without the time, the boot and the version."""
        return [" ".join(line.split()[3:]) for line in self.mine.read_text().splitlines()]


@pytest.fixture
def braked(tmp_path: Path) -> BrakedNode:
    return BrakedNode(tmp_path)


def test_a_brake_tells_how_to_loosen_it(braked: BrakedNode) -> None:
    """A boot counts once, in its last verdict. What another check finds is not hidden."""
    braked.mine.write_text(line_of("61 now 10-gpus") + line_of("2 now 40-efa"))
    assert (braked.check(gpus=8).returncode, braked.noted()) == (0, ["40-efa", ""])
    done = braked.check()
    assert (done.returncode, done.stdout) == (0, SENTENCE)
    assert (braked.folder / ".braked-10-gpus").exists(), "metrics count it"
    braked.node.stub("mountpoint", "exit 32")
    done = braked.check()
    assert done.returncode == UNHEALTHY
    assert done.stdout.strip() == "the local NVMe disks are not mounted on /scratch"
    skipped = braked.node.root / "opt/slurm/etc/training-cluster-skipped-checks"
    assert f"10-gpus: BRAKED: it reports most nodes of {braked.node.queue} as unhealthy" in done.stderr
    assert f"if it is wrong: echo 10-gpus | sudo tee -a {skipped}; " in done.stderr
    assert f"if it is right: sudo rm -r {braked.verdicts}/gpu\n" in done.stderr
    assert braked.noted() == ["40-efa", "10-gpus 50-scratch"]
    braked.mine.unlink()
    done = braked.check(SLURMD_NODENAME="")
    assert (done.returncode, done.stderr) == (UNHEALTHY, ""), "a person is told all"
    assert SENTENCE in done.stdout
    assert not braked.mine.exists()


def test_without_verdicts_nodes_drain(braked: BrakedNode) -> None:
    braked.folder.rename(braked.folder.with_name("elsewhere"))
    braked.folder.write_text("no folder")
    done = braked.check()
    assert (done.returncode, done.stdout.strip()) == (UNHEALTHY, SENTENCE)
    assert "no check is braked" in done.stderr
