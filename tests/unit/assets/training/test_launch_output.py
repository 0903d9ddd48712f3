"""launch.sh: what of each rank's output is in the job's output, and what is in the rank's file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.assets.training.waiting import LONG_S, until, wait_until
from training_cluster.paths import TRAINING

RANK = """\
import signal, sys, time
print("a line of the trainer")
print("Traceback of the trainer", file=sys.stderr)
def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open(sys.argv[1], "w").close()
time.sleep(float(sys.argv[2]))
"""

# The looks of the fence, a hundred times faster.
QUICK = """\
read() {
  if [[ $1 == -t ]]; then set -- -t "0.0$2" "${@:3}"; fi
  builtin read "$@"
}
"""


class Node:
    """A node with a workload `tiny`; a program in the place of torchrun's Python prints how it is called."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self._venv, self._ready = folder / "run", folder / "venvs" / "tiny", folder / "ready"
        self.workload, self._bin = folder / "tiny", folder / "bin"
        for each in (self.run_dir, self._venv / "bin", self.workload, self._bin):
            each.mkdir(parents=True)
        (self.workload / "train.py").write_text(RANK)
        (self.workload / "train.sh").write_text(
            f'set -euo pipefail\nsource "{TRAINING}/launch.sh"\n{QUICK}start_ranks "$@"\n'
        )
        self._env = {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "MASTER_ADDR": "10.0.0.7",
            "MASTER_PORT": "12017",
            "NNODES": "2",
            "NPROC_PER_NODE": "1",
            "EXPECTED_WORLD_SIZE": "2",
            "RUN_DIR": str(self.run_dir),
            "SLURM_JOB_ID": "17",
            "START_NUMBER": "1",
            "SLURMD_NODENAME": "train-dy-p4d-2",
            "SLURM_LOCALID": "0",
            "TRAINING_VENVS": str(folder / "venvs"),
            "TRAINING_OPT": str(folder / "opt"),
        }

    def install_torchrun(self, program: str) -> None:
        """Put a program in the place of torchrun, run by the real Python; RANK is a rank's command."""
        rank = f"RANK = [sys.executable, {str(self.workload / 'train.py')!r}, *sys.argv[-2:]]\n"
        (self._venv / "bin" / "torchrun").write_text(f"import os, subprocess, sys, time\n{rank}{program}\n")

    def program(self, name: str, text: str) -> None:
        """Write a program that precedes the machine's, which it finds with $OTHERS as PATH."""
        (self._bin / name).write_text(f'#!/bin/bash\nOTHERS="${{PATH#*:}}"\n{text}\n')
        (self._bin / name).chmod(0o755)

    def rank(self, text: str, *, then: str = "time.sleep(600)") -> None:
        """Let a rank run some text, and something else once the test knows that it is ready."""
        ready = "open(sys.argv[1], 'w').close()"
        (self.workload / "train.py").write_text(f"import os, signal, sys, time\n{text}\n{ready}\n{then}\n")

    def start(self, seconds: float = 0.0, **env: str) -> subprocess.Popen[str]:
        """Start train.sh as srun or mpirun starts it for a rank, or srun for a node of torchrun."""
        python = self._venv / "bin" / "python"
        python.unlink(missing_ok=True)
        if env["LAUNCHER"] == "torchrun" and not python.with_name("torchrun").exists():
            python.write_text('#!/bin/bash\nprintf "%s\\n" "$TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" "$@"\n')
            python.chmod(0o755)
        else:
            python.symlink_to(sys.executable)
        command = ["bash", str(self.workload / "train.sh"), str(self.workload)]
        return subprocess.Popen(
            [*command, str(self.workload / "train.py"), str(self._ready), str(seconds)],
            env=self._env | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **env: str) -> tuple[str, str]:
        """Return what the job's output has of a rank: standard output and standard error."""
        process = self.start(0.0, **env)
        printed = process.communicate(timeout=60)
        assert process.returncode == 0, printed
        return printed

    def wait_until_ready(self) -> None:
        wait_until(self._ready.exists, what="the rank does not start")

    def file_of(self, rank: int, stream: str = "stdout") -> str:
        return (self.run_dir / "logs" / "17-1" / f"rank-{rank}.{stream}.log").read_text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_jobs_output_has_errors_of_all(node: Node) -> None:
    first = node.run(LAUNCHER="srun", SLURM_PROCID="0")
    second = node.run(LAUNCHER="mpirun", PMI_RANK="1", MPI_LOCALRANKID="0")
    assert first == ("a line of the trainer\n", "Traceback of the trainer\n")
    assert second == ("", "Traceback of the trainer\n")
    for rank in (0, 1):
        assert node.file_of(rank) == "a line of the trainer\n"
        assert node.file_of(rank, "stderr") == "Traceback of the trainer\n"


def test_one_file_has_both_streams(node: Node) -> None:
    (node.workload / "train.sh").write_text(
        f'source "{TRAINING}/launch.sh"\nkeep_output all\nstart_ranks "$@"\n'
    )
    output = node.run(LAUNCHER="srun", SLURM_PROCID="0", RANK="0")
    assert (sorted(output[0].splitlines()), output[1]) == (
        ["Traceback of the trainer", "a line of the trainer"],
        "",
    )
    assert sorted((node.run_dir / "logs" / "17-1" / "rank-0.log").read_text()) == sorted(output[0])


def test_output_after_sigterm_is_kept(node: Node) -> None:
    process = node.start(seconds=60, LAUNCHER="srun", SLURM_PROCID="0")
    node.wait_until_ready()
    # To all processes of the rank, as Slurm signals them without cgroups.
    os.killpg(process.pid, signal.SIGTERM)
    assert "saved" in process.communicate(timeout=60)[0]
    assert "saved" in node.file_of(0)


def test_sigterm_ends_torchrun_without_ranks(node: Node, tmp_path: Path) -> None:
    """Otherwise its ranks would train until Slurm's KillWait, since torchrun imports torch for seconds."""
    waits = tmp_path / "waits"
    node.install_torchrun(f"open({str(waits)!r}, 'w').close()\ntime.sleep(600)")
    process = node.start(LAUNCHER="torchrun", SLURM_NODEID="0")
    wait_until(waits.exists, what="torchrun does not start")
    process.terminate()
    assert process.wait(timeout=LONG_S) != 0
    assert not (node.run_dir / "failed").exists()


def test_sigterm_reaches_later_ranks(node: Node, tmp_path: Path) -> None:
    goes_on = tmp_path / "goes-on"
    node.install_torchrun(
        "ranks = [subprocess.Popen(RANK)]\n"
        f"while not os.path.exists({str(goes_on)!r}): time.sleep(0.1)\nranks.append(subprocess.Popen(RANK))\n"
        "sys.exit(max(rank.wait() for rank in ranks))"
    )
    process = node.start(seconds=600, LAUNCHER="torchrun", SLURM_NODEID="0")
    node.wait_until_ready()
    process.terminate()
    goes_on.touch()
    process.communicate(timeout=LONG_S)


def test_torchrun_awaits_no_failed_node(node: Node) -> None:
    """When its ranks have ended well, torchrun waits for the torchrun of the others, deaf to SIGTERM."""
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    node.install_torchrun(f"subprocess.run(RANK)\nimport signal\n{deaf}\ntime.sleep(600)")
    process = node.start(seconds=600, LAUNCHER="torchrun", SLURM_NODEID="0")
    node.wait_until_ready()
    (node.run_dir / "failed").write_text("n2: exit code 137\n")
    process.terminate()
    process.communicate(timeout=LONG_S)


def test_a_second_sigterm_does_not_end_a_save(node: Node, tmp_path: Path) -> None:
    """Slurm sends one before the time limit and another at it."""
    looks, stops, goes_on = (tmp_path / name for name in ("looks", "stops", "goes-on"))
    node.program("pgrep", f'echo >>{looks}\nPATH="$OTHERS" exec pgrep "$@"')
    node.rank(
        f"signal.signal(signal.SIGTERM, lambda *_: open({str(stops)!r}, 'w').close())",
        then=f"while not os.path.exists({str(goes_on)!r}): time.sleep(0.1)\nprint('saved')",
    )
    node.install_torchrun("sys.exit(subprocess.call(RANK))")
    process = node.start(LAUNCHER="torchrun", SLURM_NODEID="0")
    node.wait_until_ready()
    process.terminate()
    wait_until(stops.exists, what="the rank gets no SIGTERM")
    looked = looks.stat().st_size
    process.terminate()
    # By then the shell has had the signal.
    wait_until(lambda: looks.stat().st_size > looked + 1, what="the ranks are not looked for again")
    goes_on.touch()
    assert (process.communicate(timeout=LONG_S)[0], process.returncode) == ("saved\n", 0)


def test_ranks_that_sigterm_ends_do_not_fail(node: Node) -> None:
    """torchrun then ends with 1, which job.slurm could not distinguish from a failure."""
    node.rank("")
    node.install_torchrun("subprocess.call(RANK)\nsys.exit(1)")
    process = node.start(LAUNCHER="torchrun", SLURM_NODEID="0")
    node.wait_until_ready()
    process.terminate()
    assert process.wait(timeout=LONG_S) == 128 + signal.SIGTERM
    assert not (node.run_dir / "failed").exists()


def test_a_failed_rank_of_mpirun_names_its_node(node: Node) -> None:
    node.rank("", then="sys.exit(3)")
    process = node.start(
        LAUNCHER="mpirun", PMI_RANK="1", MPI_LOCALRANKID="0", NODES="n1,n2", SLURM_NODEID="1"
    )
    assert (process.wait(timeout=LONG_S), (node.run_dir / "failed").read_text()) == (3, "n2: exit code 3\n")


def test_a_failed_ranks_sentence_is_kept(node: Node) -> None:
    """torchrun's report of 25 lines follows it in the job's output."""
    node.rank("from trainkit.run.run import die", then="os.environ['RANK'] = '3'; die('give BATCH_SIZE=6.')")
    node.install_torchrun("subprocess.call(RANK)\nsys.exit('ChildFailedError')")
    (node.run_dir / "logs" / "17-1").mkdir(parents=True)  # torchrun's own
    process = node.start(LAUNCHER="torchrun", SLURM_NODEID="0")
    output = process.communicate(timeout=LONG_S)[1]
    failed = (node.run_dir / "failed").read_text()
    assert failed.startswith("train.py on ")
    assert failed.endswith(", rank 3: give BATCH_SIZE=6.\n")
    assert output == f"{failed}ChildFailedError\n"


def test_a_deaf_rank_ends_after_anothers_failure(node: Node) -> None:
    """NCCL over EFA may wait for a dead peer, and Slurm's SIGKILL comes after KillWait."""
    node.rank("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    failed = node.run_dir / "failed"
    failed.write_text("train-dy-p4d-1: exit code 1\n")
    process = node.start(LAUNCHER="srun", SLURM_PROCID="0", AFTER_FAILURE_S="0")
    node.wait_until_ready()
    process.terminate()
    assert process.wait(timeout=LONG_S) == 128 + signal.SIGKILL
    assert failed.read_text() == "train-dy-p4d-1: exit code 1\n", "the first failure is the cause"


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_a_later_start_ends_ranks_unsaved(node: Node, launcher: str) -> None:
    """The node is out of Slurm's reach, so its ranks get no signal; at SIGTERM a trainer may save."""
    starts = node.run_dir / "starts"
    starts.write_text("1 10 2026-11-22T03:10:00Z n1 17 0\n")
    node.rank("signal.signal(signal.SIGTERM, lambda *_: print('saved', flush=True))")
    node.install_torchrun("sys.exit(subprocess.call(RANK))")
    process = node.start(LAUNCHER=launcher, SLURM_PROCID="0", SLURM_NODEID="0")
    node.wait_until_ready()
    with starts.open("a") as file:
        file.write("2 10 2026-11-22T03:20:00Z n2 17 1\n")
    output, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert "saved" not in output
    assert "a later start has the run: the ranks of start 1 on train-dy-p4d-2 end\n" in errors
    assert not (node.run_dir / "failed").exists()


def test_ranks_end_without_signs_of_life(node: Node) -> None:
    """The node of job.slurm is lost, and slurmctld perhaps too. A full file system keeps an empty sign."""
    sign, looks = node.run_dir / "sign-17-0", node.run_dir / "looks"
    sign.touch()
    # After look 40 the sign stays the same.
    look = f'echo >>{looks}; ((++n <= 30)) || echo "$((n < 40 ? n / 5 : 8))" >{sign}'
    (node.workload / "train.sh").write_text(
        f'set -euo pipefail\nsource "{TRAINING}/launch.sh"\n{QUICK}'
        f'n=0\nis_newest_start() {{ {look}; }}\nstart_ranks "$@"\n'
    )
    node.rank("")
    process = node.start(LAUNCHER="srun", SLURM_PROCID="0", SIGN=str(sign), SCRIPT_NODE="n1", WATCH_S="25")
    assert process.wait(timeout=LONG_S) == 128 + signal.SIGKILL
    assert (node.run_dir / "failed").read_text() == "n1: no sign of life for 50 s\n"
    assert len(looks.read_text()) == 47, "three equal reads of 20 s, and two after the sign is written back"


def test_a_rank_ends_after_its_output_is_written(node: Node, tmp_path: Path) -> None:
    """The output is written once the rank's shell waits for it, whose waits here last until then."""
    waits = tmp_path / "waits"
    logs = [f"{node.run_dir}/logs/17-1/rank-0.{stream}.log" for stream in ("stdout", "stderr")]
    node.program("tee", f'{until(str(waits))}\nPATH="$OTHERS" exec tee "$@"')
    node.program("sleep", f"touch {waits}\n" + "\n".join(until(log).replace("-e", "-s") for log in logs))
    process = node.start(LAUNCHER="srun", SLURM_PROCID="0")
    try:
        assert process.wait(timeout=LONG_S) == 0
        assert node.file_of(0)
        assert node.file_of(0, "stderr")
    finally:
        waits.touch()  # for the programs, if the rank did not wait


@pytest.mark.slow
def test_a_left_process_delays_no_end(node: Node) -> None:
    left = "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)\n"
    (node.workload / "train.py").write_text(left)
    process = node.start(LAUNCHER="srun", SLURM_PROCID="1")
    assert process.wait(timeout=LONG_S) == 0
    os.kill(int(node.file_of(1)), signal.SIGKILL)


def test_a_node_ranks_by_the_order_of_nodes(node: Node) -> None:
    output = node.run(LAUNCHER="torchrun", SLURM_NODEID="1", NODES="train-dy-p4d-2,train-dy-p4d-1")[0]
    lines = output.splitlines()
    assert lines[lines.index("--node-rank") + 1] == "0"
    assert lines[lines.index("--tee") + 1] == "0:3"


def test_another_launcher_knows_the_rank_of_its_node(node: Node) -> None:
    (node.workload / "train.sh").write_text(
        f'set -euo pipefail\nsource "{TRAINING}/launch.sh"\nrank_environment\nenv\n'
    )
    output = node.run(LAUNCHER="torchrun", SLURM_NODEID="0", NODES="train-dy-p4d-1,train-dy-p4d-2")[0]
    assert "NODE_RANK=1" in output.splitlines()


def test_torchrun_shows_errors_and_rank_0(node: Node) -> None:
    folder = str(node.run_dir / "logs" / "17-1" / "train-dy-p4d-2")
    for node_id, ranks, shown in (
        ("0", 1, "0:3"),
        ("0", 4, "0:3,1:2,2:2,3:2"),
        ("0", 32, "3"),
        ("1", 4, "2"),
        ("1", 32, "2"),
    ):
        bound = {"NUMA_BINDING": "node"} if ranks == 4 else {}
        output = node.run(LAUNCHER="torchrun", SLURM_NODEID=node_id, NPROC_PER_NODE=str(ranks), **bound)[0]
        lines = output.splitlines()
        assert lines[0] == "${rank}: "
        options = ["--log-dir", folder, "--redirects", "3", "--tee", shown]
        options += ["--numa-binding", "node"] if bound else ["--nnodes", "2"]
        assert lines[lines.index("--log-dir") :][:8] == options
