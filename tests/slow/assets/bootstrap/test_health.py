"""The prolog under a real Slurm: an unhealthy node drains with the reason, and its job runs elsewhere."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from rehearsal.local_slurm import Job, LocalSlurm
from tests.slow.assets.training.tiny import TINY
from tests.slow.assets.training.training import Training, local_slurm, wait_until
from tests.unit.assets.bootstrap.health.health_node import HealthNode

pytestmark = pytest.mark.slow

NAME = "train-dy-p4d-{}"
WHERE = "srun --mpi=none bash -c 'echo $SLURMD_NODENAME'"
REASON = "training-cluster: nvidia-smi lists 7 of 8 GPUs"


class Cluster:
    """A Slurm, the one disk of all its nodes, and the shared folder of job.slurm."""

    def __init__(self, slurm: LocalSlurm, node: HealthNode, training: Training) -> None:
        self.slurm, self.node, self.training = slurm, node, training

    def break_nodes(self, *numbers: int) -> None:
        """Give these nodes seven GPUs, and all others eight."""
        bad = "|".join(NAME.format(n) for n in numbers) or "none"
        script = f'case $SLURMD_NODENAME in {bad}) n=7 ;; *) n=8 ;; esac\n[ "$1" = --list-gpus ] || exit 0\n'
        self.node.stub("python3", "")
        self.node.stub("nvidia-smi", script + "seq -f 'GPU %g: NVIDIA A100 (UUID: GPU-x)' $n")

    def submit(self, nodes: int) -> int:
        return self.slurm.submit([f"--nodes={nodes}", "--exclusive", "--wrap", WHERE])

    def wait(self, job_id: int) -> tuple[Job, list[str]]:
        """Wait for the end of a job; return it, and the nodes of its last start."""
        job = self.slurm.wait(job_id, timeout_s=60)
        lines = job.output.read_text().splitlines()
        return job, sorted(line for line in lines[-8:] if line.startswith("train-dy-"))

    def say(self, *command: str) -> str:
        environment = self.slurm.client_env()
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def reasons(self) -> dict[str, str]:
        lines = self.say("sinfo", "-R", "--noheader", "--Node", "--format=%N|%E").splitlines()
        return dict(line.strip().split("|") for line in lines)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("health")
    node = HealthNode(folder / "node", queue_name="train")
    node.be_well()
    node.install_prolog()
    slurm = local_slurm(
        folder / "slurm", mark="health", suspend_time_s=300, nodes=4, prolog=node.prolog_folder
    )
    with slurm:
        training = Training(slurm, folder, workload="tiny", env={"TRAINING_VENVS": str(folder / "venvs")})
        shutil.copytree(TINY, training.shared / "training" / "tiny")
        yield Cluster(slurm, node, training)


def test_jobs_of_unhealthy_nodes_run_on_others(cluster: Cluster) -> None:
    """The second node of a training is unhealthy: Slurm checks it before the batch script starts."""
    cluster.break_nodes(1, 3)
    alone, together = cluster.submit(1), cluster.training.submit("moved", MAX_STEPS="2", MAX_RESTARTS="0")
    job, ran_on = cluster.wait(alone)
    assert job.is_completed, job
    assert ran_on in ([NAME.format(2)], [NAME.format(4)])
    output = cluster.training.wait(together, state="COMPLETED")
    (start,) = (cluster.training.run_dir("moved") / "starts").read_text().splitlines()
    assert start.split()[3:6:2] == ["train-dy-p4d-[2,4]", "1"], output
    for job_id in (alone, together):
        assert "Restarts=1" in cluster.say("scontrol", "show", "job", str(job_id))
    assert cluster.reasons() == {NAME.format(1): REASON, NAME.format(3): REASON}
    states = cluster.slurm.node_states()
    assert {states[NAME.format(n)].rstrip("*~%!") for n in (1, 3)} == {"drained"}


def test_a_killed_prolog_costs_its_job_a_start(cluster: Cluster) -> None:
    """Slurm takes a prolog that a signal ended for a node that failed; ParallelCluster replaces that node."""
    before = set(cluster.reasons())
    killed = cluster.node.folder / "killed"
    hang = f'if mkdir "{killed}" 2>/dev/null; then echo $SLURMD_NODENAME >"{killed}/on"; exec sleep 60; fi\n'
    cluster.node.stub("nvidia-smi", f"{hang}seq -f 'GPU %g: NVIDIA A100 (UUID: GPU-x)' 8")
    job_id = cluster.submit(1)
    wait_until((killed / "on").is_file, timeout_s=60, what="no prolog checks its node")
    name = (killed / "on").read_text().strip()
    # With its children: the check that hangs would drain the node by itself at its limit.
    for prolog in prologs(cluster.node):
        for process in (prolog, *prolog.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # a child ends with its pipe
                process.kill()
    job, ran_on = cluster.wait(job_id)
    assert job.is_completed
    assert "Restarts=1" in cluster.say("scontrol", "show", "job", str(job_id))
    assert ran_on != [name]
    assert set(cluster.reasons()) - before == {name}
    assert cluster.reasons()[name] == "Prolog error"
    # Its place is taken by another one, which is checked as every node is.
    cluster.say("scontrol", "update", f"nodename={name}", "state=resume")
    job_id = cluster.submit(2)
    job, ran_on = cluster.wait(job_id)
    assert job.is_completed
    assert name in ran_on
    assert f"health: {name}, job {job_id}: healthy" in cluster.node.health_log()
    assert set(cluster.reasons()) == before


def prologs(node: HealthNode) -> list[psutil.Process]:
    """The prologs that run, of all nodes."""
    (prolog,) = node.prolog_folder.iterdir()
    return [each for each in psutil.process_iter(["cmdline"]) if str(prolog) in (each.info["cmdline"] or [])]


def test_a_node_that_loses_a_gpu_drains(cluster: Cluster) -> None:
    before = cluster.reasons()
    # Those of the tests above would brake the check.
    shutil.rmtree(cluster.node.root / "opt/slurm/etc/training-cluster-verdicts")
    lost = cluster.node.folder / "lost"
    cluster.break_nodes()
    programs = cluster.node.programs / "nvidia-smi"
    programs.write_text(
        programs.read_text().replace("n=7 ;; *) n=8", f"n=7 ;; *) n=$(cat {lost} 2>/dev/null || echo 8)")
    )
    program = f"srun --mpi=none bash -c 'echo $SLURMD_NODENAME; echo 7 >{lost}'"
    job_id = cluster.slurm.submit(["--nodes=1", "--exclusive", "--wrap", program])
    try:
        job, (ran_on,) = cluster.wait(job_id)
        assert job.is_completed
        wait_until(lambda: set(cluster.reasons()) > set(before), timeout_s=60, what="no node drains")
    finally:
        lost.unlink(missing_ok=True)
    assert {name: why for name, why in cluster.reasons().items() if name not in before} == {ran_on: REASON}
    assert f"health: {ran_on}, after job {job_id}: unhealthy, drained: " in cluster.node.health_log()
