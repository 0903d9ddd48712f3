"""The drain limit: a check that reports most nodes as unhealthy drains none; else it drains a node."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY, checks_version, gpu_node, smi
from training_cluster.paths import ASSETS

SENTENCE = "nvidia-smi lists 7 of 8 GPUs"
FIT, SICK = "", "10-gpus"


class BrakedNode:
    """One of several nodes of a partition, which finds seven of its eight GPUs before a job."""

    def __init__(self, root: Path) -> None:
        self.node = gpu_node(root)
        smi(self.node, gpus="list-gpus-7.txt")
        self.verdicts = self.node.root / "opt/slurm/etc/training-cluster-verdicts"

    def others(
        self, *said: str, minutes_ago: float = 1, partition: str | None = None, checks_of: str = ""
    ) -> None:
        """Write the verdicts of other nodes: for each the names of failed checks, or none."""
        folder = self.verdicts / (partition or self.node.queue)
        folder.mkdir(parents=True, exist_ok=True)
        begin = f"{time.time() - 60 * minutes_ago:.0f} boot {checks_of or checks_version()}"
        for number, checks in enumerate(said):
            (folder / f"other-{number}").write_text(f"{begin} {checks}\n")

    def check(self, **environment: str) -> subprocess.CompletedProcess[str]:
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
        lines = (self.verdicts / self.node.queue / "gpu-dy-p4d-1").read_text().splitlines()
        return [" ".join(line.split()[3:]) for line in lines]


@pytest.fixture
def braked(tmp_path: Path) -> BrakedNode:
    return BrakedNode(tmp_path)


@pytest.mark.parametrize(
    ("others", "drains"),
    [
        ([], True),
        ([FIT] * 8, True),
        ([SICK], True),
        ([SICK, SICK], False),
        ([SICK, SICK, FIT, FIT], False),
        ([SICK, SICK, FIT, FIT, FIT], True),
        (["40-efa"] * 9, True),
        (["40-efa 10-gpus"] * 2, False),
    ],
    ids=[
        *("alone", "one of nine", "two of two", "three of three", "three of five", "half", "other check"),
        "both checks",
    ],
)
def test_a_check_drains_until_it_has_called_three_nodes_and_most_of_them_unhealthy(
    braked: BrakedNode, others: list[str], drains: bool
) -> None:
    braked.others(*others)
    done = braked.check()
    assert (done.returncode, done.stdout.strip()) == (UNHEALTHY if drains else 0, SENTENCE), done
    assert ("10-gpus: BRAKED" in done.stderr) is not drains
    assert braked.noted() == ["10-gpus"]


def test_who_reads_of_a_brake_reads_how_to_loose_it(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    said = braked.check().stderr
    skipped = braked.node.root / "opt/slurm/etc/training-cluster-skipped-checks"
    assert f"if it is wrong: echo 10-gpus | sudo tee -a {skipped}; " in said
    assert f"if it is right: sudo rm -r {braked.verdicts}/gpu\n" in said


def test_an_hour_later_nodes_drain_again(braked: BrakedNode) -> None:
    braked.others(SICK, SICK, minutes_ago=61)
    assert braked.check().returncode == UNHEALTHY


def test_nodes_of_another_partition_do_not_count(braked: BrakedNode) -> None:
    braked.others(*[SICK] * 4, partition="other")
    assert braked.check().returncode == UNHEALTHY
    braked.others(SICK, SICK)
    braked.others(*[FIT] * 9, partition="other")
    assert braked.check().returncode == 0


def test_one_node_that_is_replaced_by_the_same_sick_machine_again_and_again_brakes_nothing(
    braked: BrakedNode,
) -> None:
    braked.others(FIT)
    mine = braked.verdicts / braked.node.queue / "gpu-dy-p4d-1"
    mine.write_text("".join(f"{time.time():.0f} boot-{n} {checks_version()} 10-gpus\n" for n in range(4)))
    assert braked.check().returncode == UNHEALTHY
    assert braked.noted() == ["10-gpus"] * 5


def test_nodes_that_older_checks_called_fit_do_not_keep_a_new_check_from_being_braked(
    braked: BrakedNode,
) -> None:
    """After a deploy most nodes are idle, and have passed the checks of the bundle before."""
    braked.others(*[FIT] * 20, checks_of="older")
    folder = braked.verdicts / braked.node.queue
    for number in range(2):
        (folder / f"new-{number}").write_text(f"{time.time():.0f} boot {checks_version()} 10-gpus\n")
    assert braked.check().returncode == 0


def test_verdicts_of_older_checks_brake_no_new_one(braked: BrakedNode) -> None:
    braked.others(*[SICK] * 4, checks_of="older")
    assert braked.check().returncode == UNHEALTHY


@pytest.mark.slow
def test_replaced_nodes_count_once_a_boot(braked: BrakedNode) -> None:
    """A third verdict, though under two names, shows that the check is wrong."""
    braked.others(SICK)
    assert [braked.check().returncode for _ in range(3)] == [UNHEALTHY] * 3
    with (braked.verdicts / braked.node.queue / "other-0").open("a") as file:
        file.write(f"{time.time():.0f} next-boot {checks_version()} 10-gpus\n")
    assert braked.check().returncode == 0


def test_a_braked_check_does_not_hide_what_another_one_finds(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    braked.node.stub("mountpoint", "exit 32")
    done = braked.check()
    assert done.returncode == UNHEALTHY
    assert done.stdout.strip() == "the local NVMe disks are not mounted on /scratch"
    assert "10-gpus: BRAKED" in done.stderr
    assert braked.noted() == ["10-gpus 50-scratch"]


def test_a_node_whose_verdict_cannot_be_written_drains(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    folder = braked.verdicts / braked.node.queue
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("no folder")
    done = braked.check()
    assert done.returncode == UNHEALTHY
    assert "no check is braked" in done.stderr


def test_a_person_on_a_node_is_told_all_and_leaves_no_verdict(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    done = braked.check(SLURMD_NODENAME="")
    assert (done.returncode, done.stdout.strip()) == (UNHEALTHY, SENTENCE)
    assert not (braked.verdicts / braked.node.queue / "gpu-dy-p4d-1").exists()


def test_a_fit_node_says_so_to_the_others(braked: BrakedNode) -> None:
    smi(braked.node)
    assert (braked.check().returncode, braked.noted()) == (0, [""])


def test_the_prolog_lets_the_job_start_and_says_so_in_log_and_comment(braked: BrakedNode) -> None:
    braked.others(SICK, SICK)
    node = braked.node
    node.stub("scontrol", "")
    slurm = {"SLURMD_NODENAME": "gpu-dy-p4d-1", "SLURM_JOB_ID": "17", "HEALTH_SETTLE_S": "0"}
    done = subprocess.run([str(node.install_prolog())], env=slurm, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    log = node.health_log()
    assert f"job 17: UNHEALTHY, not drained: the same is reported of most nodes: {SENTENCE}\n" in log
    assert "10-gpus: BRAKED" in log
    (call,) = [line for line in node.called() if line.startswith("scontrol update")]
    assert call.startswith("scontrol update nodename=gpu-dy-p4d-1 comment=training-cluster: braked at 20")
    assert call.endswith(f", job 17: {SENTENCE}")


@pytest.mark.parametrize(("minutes_ago", "values"), [(None, []), (1, [1.0]), (61, [])])
def test_the_head_node_publishes_how_many_checks_are_braked(
    braked: BrakedNode, minutes_ago: float | None, values: list[float]
) -> None:
    braked.others(SICK, SICK)
    if minutes_ago:
        assert braked.check().returncode == 0
        (marker,) = (braked.verdicts / braked.node.queue).glob(".braked-*")
        then = time.time() - 60 * minutes_ago
        os.utime(marker, (then, then))
    node = braked.node
    node.stub("sinfo", "echo 'gpu|gpu-dy-x-1|idle|10.0.0.1|Unknown|none'")
    node.stub("squeue", "")
    node.stub("sdiag", "")
    node.stub("aws", f'for last in "$@"; do :; done; echo "$last" >{node.folder}/data')
    program = ASSETS / "bootstrap" / "metrics" / "head_node.py"
    subprocess.run(
        [
            *(sys.executable, "-B", str(program), "--cluster", "training", "--region", "eu-west-1"),
            *("--state", str(node.folder / "state"), "--runs", str(node.folder / "runs")),
        ],
        env={"PATH": f"{node.programs}:{os.environ['PATH']}", "TRAINING_ROOT": str(node.root)},
        check=True,
    )
    data = json.loads((node.folder / "data").read_text())
    published = [each for each in data if each["MetricName"] == "BrakedChecks"]
    assert [each["StatisticValues"]["Sum"] for each in published] == values
    assert [each["Dimensions"] for each in published] == [
        [{"Name": "ClusterName", "Value": "training"}] for _ in values
    ]
