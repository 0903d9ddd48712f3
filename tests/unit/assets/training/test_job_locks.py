"""Two jobs on two nodes: what one locks in the shared folder, the other waits for.

A lock on a folder of Lustre or NFS holds on one node only. The stand-in for `flock` here does the same: two
jobs that lock a folder lock a file of their own node each; of a regular file all nodes have the same lock.
"""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.training.waiting import LONG_S, read_until, until, wait_until
from training_cluster.paths import TRAINING

FLOCK = shutil.which("flock")
STAND_IN = f"""\
#!/usr/bin/env bash
case $1 in
  *[!0-9]*) locked="$1" ;;
  *) locked="$(readlink "/proc/$$/fd/$1")" ;;
esac
if [[ ! -d $locked ]]; then exec {FLOCK} "$@"; fi
exec {{lock}}>"$NODE_DISK/${{locked//\\//-}}"
if [[ $1 == "$locked" ]]; then exec {FLOCK} "$NODE_DISK/${{locked//\\//-}}" "${{@:2}}"; fi
"""
SCONTROL = """\
#!/bin/sh
if [ "$2" != node ]; then echo n1; else echo "Name=n1 NodeAddr=127.0.0.1 "; fi
"""
# Root without the right to write where its folders' modes say no.
AS_A_USER = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()
# Prepares until the test lets it finish, and fails if another job prepares meanwhile.
PREPARE_ALONE = f"""\
mkdir "$DATA_DIR/busy" || {{ echo "two jobs prepare at once" >&2; exit 1; }}
{until("$DATA_DIR/finish")}
rmdir "$DATA_DIR/busy"
"""


class Cluster:
    """A shared folder, and jobs that run beside each other, each on a node of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared = folder, folder / "fsx"
        self.tiny = self.shared / "training" / "tiny"
        self.script = TRAINING / "job.slurm"
        self.tiny.mkdir(parents=True)
        for file in (*TRAINING.glob("*.sh"), *TRAINING.glob("*.py"), TRAINING / "trainkit"):
            (self.tiny.parent / file.name).symlink_to(file)
        shutil.copy(TRAINING / "variables.tsv", self.tiny.parent)
        (self.tiny / "train.sh").write_text("")
        (self.tiny / "prepare.sh").write_text("")
        (folder / "etc" / "partitions").mkdir(parents=True)
        (folder / "etc" / "partitions" / "cpu.env").write_text("export RANKS_PER_NODE=1\n")
        # Slow, so that two jobs ask at the same time.
        self.program("squeue", "#!/bin/sh\nsleep 0.3\nprintf '8\\n9\\n'\n")
        self.program("flock", STAND_IN)
        self.program("scontrol", SCONTROL)

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def submit(self, job: int, **settings: str) -> subprocess.Popen[str]:
        """Start a job that prepares the workload and ends."""
        disk = self.folder / f"node-{job}"
        disk.mkdir(exist_ok=True)
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "NODE_DISK": str(disk),
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_ETC": str(self.folder / "etc"),
            "SLURM_JOB_ID": str(job),
            "SLURM_JOB_PARTITION": "cpu",
            "SLURMD_NODENAME": "n1",
            "SLURM_JOB_NODELIST": "n1",
            "SLURM_JOB_NUM_NODES": "1",
            "PREPARE_ONLY": "1",
        }
        return subprocess.Popen(
            [*AS_A_USER, "bash", str(self.script), "tiny", "a b"],
            env=environment | settings,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, **settings: str) -> tuple[int, str]:
        """Return the exit code and the output of job 8."""
        (ended,) = ends(self.submit(8, **settings))
        return ended


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def ends(*jobs: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """Exit codes and outputs of jobs that end."""
    outputs = [job.communicate(timeout=LONG_S)[1] for job in jobs]
    return [(job.returncode, each) for job, each in zip(jobs, outputs, strict=True)]


def test_one_job_prepares_and_another_waits(cluster: Cluster) -> None:
    (cluster.tiny / "prepare.sh").write_text(PREPARE_ALONE)
    data = cluster.shared / "datasets" / "tiny"
    first = cluster.submit(8)
    wait_until(lambda: first.poll() is not None or (data / "busy").is_dir(), what="no job prepares")
    second = cluster.submit(9)
    read_until(second, "another job prepares tiny: waiting for it")
    (data / "finish").touch()
    ended = ends(first, second)
    assert [code for code, _ in ended] == [0, 0], ended


def test_one_of_two_jobs_claims_a_run(cluster: Cluster) -> None:
    owner = cluster.shared / "runs" / "tiny" / "mine" / "owner"
    owner.parent.mkdir(parents=True)
    owner.write_text("7\n")  # which ended
    ended = sorted(ends(cluster.submit(8, RUN_NAME="mine"), cluster.submit(9, RUN_NAME="mine")))
    assert [code for code, _ in ended] == [0, 1], ended
    assert re.search(r"job [89] already trains the run mine of tiny", ended[1][1])


def test_a_job_that_notifies_nobody_is_refused(cluster: Cluster) -> None:
    code, output = cluster.run(RUN_NAME="mine", NOTIFY="webhook", NOTIFY_FILE=str(cluster.folder / "none"))
    assert "job.slurm: NOTIFY is webhook, but notifications cannot be sent.\n  " in output
    assert (code, (cluster.shared / "runs" / "tiny").exists()) == (1, False)


def test_a_job_reads_its_secrets_and_image(cluster: Cluster) -> None:
    for settings, words in (
        ({"PLAIN": "secret:a"}, "its value would be in reports"),
        ({"CONTAINER_IMAGE": "/none.sqsh"}, "CONTAINER_IMAGE"),
    ):
        code, output = cluster.run(**settings)
        assert (code, words in output) == (1, True), output


def test_a_requeued_job_runs_the_deployed_script(cluster: Cluster) -> None:
    """Slurm keeps the job.slurm of the submission, and a deploy replaces all that it sources."""
    (cluster.tiny / "prepare.sh").write_text('echo "prepares $# $1" >&2\n')
    (cluster.tiny.parent / "job.slurm").symlink_to(cluster.script)
    cluster.script = cluster.folder / "job.slurm"
    text = (TRAINING / "job.slurm").read_text()
    cluster.script.write_text(re.sub("^readonly job_script=.*$", "prepare() { exit 9; }", text, flags=re.M))
    code, output = cluster.run()
    assert (code, "\nprepares 1 a b\n" in output) == (0, True), output
    assert f"it continues as {cluster.shared}/training/job.slurm" in output


def test_mpirun_needs_intel_mpi(cluster: Cluster) -> None:
    (cluster.tiny / "train.sh").write_text("# Launchers: torchrun mpirun\n")
    code, output = cluster.run(LAUNCHER="mpirun")
    assert "tiny has no Intel MPI: its requirements.txt does not name impi-rt" in output
    assert code == 1
    output = cluster.run(LAUNCHER="mpirun", HOSTTYPE="aarch64")[1]
    assert "Intel MPI is for x86_64, and these nodes are aarch64" in output


def test_a_spot_notice_requeues_a_preparation(cluster: Cluster) -> None:
    """In a container it is a step of the job, to which node_service.py sends SIGTERM."""
    (cluster.tiny / "prepare.sh").write_text("exit 143\n")
    cluster.program("squeue", "#!/bin/sh\ncase $* in *State*) echo RUNNING 0 n1 ;; *) echo 8 ;; esac\n")
    cluster.program("sinfo", "#!/bin/sh\necho n1 draining training-cluster: EC2 takes it: spot\n")
    code, output = cluster.run()
    assert code == 1, output
    assert "the preparation ended: n1 (training-cluster: EC2 takes it: spot); queued again" in output


def test_a_cancelled_finish_sh_ends_at_once(cluster: Cluster) -> None:
    """Only this script gets the signal; it would wait until KillWait."""
    runs, goes_on = cluster.folder / "runs", cluster.folder / "go"
    (cluster.tiny / "finish.sh").write_text(f"touch {runs}\n{until(str(goes_on))}\n")
    cluster.program("srun", '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n')
    cluster.program("squeue", "#!/bin/sh\necho RUNNING 0 n1\n")
    cluster.program("sinfo", "#!/bin/sh\necho n1 allocated\n")
    job = cluster.submit(8, SLURMD_NODENAME="n1", PREPARE_ONLY="0", HANG_TIMEOUT_S="0")
    wait_until(runs.exists, what="finish.sh does not run")
    job.terminate()
    assert job.wait(timeout=LONG_S) == -signal.SIGTERM
    goes_on.touch()


def test_a_run_that_is_not_writable_is_refused(cluster: Cluster) -> None:
    run = cluster.shared / "runs" / "tiny" / "mine"
    run.mkdir(parents=True)
    run.chmod(0o555)
    code, output = cluster.run(RUN_NAME="mine")
    assert code == 1
    assert f"may not write to the run mine of tiny: {run} belongs to {run.owner()}." in output
    assert "RUN_NAME=other sbatch" in output


def test_a_workload_that_is_not_writable_is_refused(cluster: Cluster) -> None:
    for kind in ("checkpoints", "runs"):
        closed = cluster.shared / kind / "tiny"
        closed.mkdir(parents=True, exist_ok=True)
        closed.chmod(0o555)
        code, output = cluster.run(RUN_NAME=kind)
        assert (code, f"{closed}/{kind}" in output) == (1, True)
        assert f"cannot create the folders of the run {kind} of tiny: see the line above.\n  Ask" in output


@pytest.mark.root
@pytest.mark.parametrize(
    "folder", ["runs/tiny", "runs/tiny/mine", "checkpoints/tiny", "checkpoints/tiny/mine"]
)
def test_another_users_run_is_refused(cluster: Cluster, folder: str) -> None:
    theirs = cluster.shared / folder
    theirs.mkdir(parents=True)
    os.chown(theirs, 65534, 65534)
    theirs.chmod(0o777)
    code, output = cluster.run(RUN_NAME="mine")
    assert f"the run mine of tiny belongs to nobody, who could run code as root by it: {theirs}." in output
    assert (code, "RUN_NAME=other sbatch" in output) == (1, True)


def test_spares_are_as_many_as_are_free(cluster: Cluster) -> None:
    code, output = cluster.run(SPARES="1", MIN_NODES="1")
    assert (code, "job.slurm: 0 spare nodes\n" in output) == (0, True), output
    code, output = cluster.run(SPARES="1")
    assert (code, "and the job has 1 nodes: none is left to train" in output) == (1, True), output
