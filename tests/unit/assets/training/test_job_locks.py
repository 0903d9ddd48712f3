"""Two jobs on two nodes: what one locks in the shared folder, the other waits for.

A lock on a folder of Lustre or NFS holds on one node only. The stand-in for `flock` here does the same: two
jobs that lock a folder lock a file of their own node each; of a regular file all nodes have the same lock.
"""

import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
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
        shutil.copytree(TRAINING, self.shared / "training")
        tiny = self.shared / "training" / "tiny"
        tiny.mkdir()
        (tiny / "train.sh").write_text("")
        (tiny / "prepare.sh").write_text("")
        (folder / "etc" / "partitions").mkdir(parents=True)
        (folder / "etc" / "partitions" / "cpu.env").write_text("export RANKS_PER_NODE=1\n")
        self._program("flock", STAND_IN)
        self._program(
            "scontrol",
            '#!/bin/sh\nif [ "$2" = hostnames ]; then echo n1; else echo "Name=n1 NodeAddr=127.0.0.1 "; fi\n',
        )
        # Slow, so that two jobs ask at the same time.
        self._program("squeue", "#!/bin/sh\nsleep 1\nprintf '8\\n9\\n'\n")

    def _program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def submit(self, job: int, **settings: str) -> subprocess.Popen[str]:
        """Start a job that prepares the workload and ends."""
        disk = self.folder / f"node-{job}"
        disk.mkdir()
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "TRAINING"))
        }
        environment = clean | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "NODE_DISK": str(disk),
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_ETC": str(self.folder / "etc"),
            "SLURM_JOB_ID": str(job),
            "SLURM_JOB_PARTITION": "cpu",
            "SLURM_JOB_NODELIST": "n1",
            "SLURM_JOB_NUM_NODES": "1",
            "PREPARE_ONLY": "1",
        }
        return subprocess.Popen(
            [*AS_A_USER, "bash", str(TRAINING / "job.slurm"), "tiny"],
            env=environment | settings,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def said(*jobs: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """Exit codes and words of jobs that end."""
    words = [job.communicate(timeout=LONG_S)[1] for job in jobs]
    return [(job.returncode, each) for job, each in zip(jobs, words, strict=True)]


@pytest.mark.slow
def test_of_two_jobs_on_two_nodes_one_prepares_and_the_other_waits(cluster: Cluster) -> None:
    (cluster.shared / "training" / "tiny" / "prepare.sh").write_text(PREPARE_ALONE)
    data = cluster.shared / "datasets" / "tiny"
    first = cluster.submit(8)
    wait_until(lambda: first.poll() is not None or (data / "busy").is_dir(), what="no job prepares")
    second = cluster.submit(9)
    read_until(second, "another job prepares tiny: waiting for it")
    (data / "finish").touch()
    done = said(first, second)
    assert [code for code, _ in done] == [0, 0], done


def test_a_preparation_that_a_spot_notice_ends_is_queued_again(cluster: Cluster) -> None:
    """In a container it is a step of the job, to which the watch for notices sends SIGTERM."""
    prepare = cluster.shared / "training" / "tiny" / "prepare.sh"
    prepare.write_text('echo "n1: terminate" >"$RUN_DIR/spot-notice-8-0"; exit 143\n')
    ((code, words),) = said(cluster.submit(8))
    assert code == 0, words
    assert "EC2 is about to take a node (n1: terminate): the training was not started; queued again" in words


def test_a_job_that_is_cancelled_during_finish_sh_ends_at_once(cluster: Cluster) -> None:
    """Only this script gets the signal; it would wait until KillWait."""
    tiny, runs, goes_on = cluster.shared / "training" / "tiny", cluster.folder / "runs", cluster.folder / "go"
    (tiny / "finish.sh").write_text(f"touch {runs}\n{until(str(goes_on))}\n")
    cluster._program("srun", "#!/bin/sh\n")
    job = cluster.submit(8, PREPARE_ONLY="0", HANG_TIMEOUT_S="0")
    wait_until(runs.exists, what="finish.sh does not run")
    job.terminate()
    assert job.wait(timeout=LONG_S) == -signal.SIGTERM
    goes_on.touch()


@pytest.mark.slow
def test_a_preparation_that_fails_fails_the_job_and_a_person_hears_of_it(cluster: Cluster) -> None:
    messages: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    (cluster.shared / "training" / "tiny" / "prepare.sh").write_text("echo 'no text' >&2; exit 3\n")
    webhook = cluster.folder / "webhook"
    webhook.touch(mode=0o600)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        webhook.write_text(f"http://127.0.0.1:{server.server_port}/")
        ((code, words),) = said(cluster.submit(8, NOTIFY="webhook", NOTIFY_FILE=str(webhook)))
        server.shutdown()
    assert (code, "no text" in words) == (1, True), words
    (message,) = messages
    assert message.startswith("[given up] job 8 (")
    assert message.endswith("the preparation failed")


@pytest.mark.slow
def test_of_two_jobs_that_claim_a_run_at_the_same_time_one_is_refused(cluster: Cluster) -> None:
    owner = cluster.shared / "runs" / "tiny" / "mine" / "owner"
    owner.parent.mkdir(parents=True)
    owner.write_text("7\n")  # which ended
    done = sorted(said(cluster.submit(8, RUN_NAME="mine"), cluster.submit(9, RUN_NAME="mine")))
    assert [code for code, _ in done] == [0, 1], done
    assert re.search(r"job [89] already trains the run mine of tiny", done[1][1])


def test_a_run_that_this_user_may_not_write_is_refused_with_its_owner(cluster: Cluster) -> None:
    run = cluster.shared / "runs" / "tiny" / "mine"
    run.mkdir(parents=True)
    run.chmod(0o555)
    ((code, words),) = said(cluster.submit(8, RUN_NAME="mine"))
    assert code == 1
    assert f"may not write to the run mine of tiny: {run} belongs to {run.owner()}." in words
    assert "RUN_NAME=other sbatch" in words


@pytest.mark.parametrize("kind", ["runs", "checkpoints"])
def test_a_workload_in_whose_folder_this_user_may_not_write_is_one_message(
    cluster: Cluster, kind: str
) -> None:
    closed = cluster.shared / kind / "tiny"
    closed.mkdir(parents=True)
    closed.chmod(0o555)
    ((code, words),) = said(cluster.submit(8, RUN_NAME="mine"))
    assert code == 1
    assert f"{closed}/mine" in words
    assert "cannot create the folders of the run mine of tiny: see the line above.\n  Ask the owner" in words


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("kind", ["runs", "checkpoints"])
def test_a_run_that_another_user_made_beforehand_is_refused(cluster: Cluster, kind: str) -> None:
    taken = cluster.shared / kind / "tiny" / "mine"
    taken.mkdir(parents=True)
    assert refuses_nobodys(cluster, taken, job=8)
    ((code, words),) = said(cluster.submit(9, RUN_NAME="other"))
    assert code == 0, words


@pytest.mark.root
@pytest.mark.parametrize("kind", ["runs", "checkpoints"])
def test_a_run_below_a_folder_that_another_user_made_is_refused(cluster: Cluster, kind: str) -> None:
    (cluster.shared / kind / "tiny").mkdir(parents=True)
    assert refuses_nobodys(cluster, cluster.shared / kind / "tiny", job=8)


def refuses_nobodys(cluster: Cluster, folder: Path, *, job: int) -> bool:
    """Give a folder to another user, and submit a run that uses it."""
    os.chown(folder, 65534, 65534)
    folder.chmod(0o777)
    ((code, words),) = said(cluster.submit(job, RUN_NAME="mine"))
    refused = f"the run mine of tiny belongs to nobody, who could run code as root by it: {folder}." in words
    return code == 1 and refused and "RUN_NAME=other sbatch" in words
