"""job.slurm on a real Slurm, tiny trainer: a whole run, its claim and network, and each launcher."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.assets.training.tiny import (
    TINY,
    WITH_REQUIREMENTS,
    starts,
    steps,
    tiny_on_slurm,
    wait_for_words,
)
from tests.slow.assets.training.training import Training, wait_until
from training_cluster.paths import ROOT

pytestmark = pytest.mark.slow

LOGS = ROOT / "tests" / "unit" / "assets" / "training" / "nccl_tests" / "logs"
TCP = {"EFA_INTERFACES": "4", "NCCL_LINES": str(LOGS / "bad-efa-unused.log")}
EFA = {"EFA_INTERFACES": "4", "NCCL_LINES": str(LOGS / "good-p4d-2-nodes.log")}


SPAWNS = """\
cp -n "$here/torchrun.py" "$venv/bin/torchrun"
cat >"$RUN_DIR/spawns.py" <<'END'
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    process.join()
END
"$venv/bin/python" -B "$RUN_DIR/spawns.py"
"""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("tiny")) as training:
        yield training


def test_a_whole_run_ends_with_its_report(training: Training) -> None:
    said = training.run("whole")
    assert steps(training, "whole") == list(range(1, 9))
    assert {row["world_size"] for row in training.metrics("whole")} == {2}
    assert "report: 8 steps, loss 7.7600 -> 6.2699, 500 tokens/s (median)" in said
    assert "world size 2, restarts: 0" in said
    assert "published: the tests' own trainer, p4d, 2 nodes: 66,000 tokens/s" in said
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert starts(training, "whole") == [("0", "0")]
    assert (training.run_dir("whole") / "ends").read_text().endswith(" 0 ranks\n")
    (settings,) = training.run_dir("whole").glob("settings-*.env")
    assert "FAMILY=p4d" in settings.read_text()
    assert "MAX_STEPS" not in settings.read_text(), "it was not set"


def test_nothing_runs_from_the_folder_of_submission(training: Training, tmp_path: Path) -> None:
    """Others may write to it, as to /fsx. The spawned process stands for what a workload starts itself."""
    folder, ran, webhook = tmp_path / "submitted", tmp_path / "ran", tmp_path / "webhook"
    folder.mkdir()
    for name in (*sys.stdlib_module_names, "pip", "torch", "trainkit", "yaml"):
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write(__name__ + ' ')\n")
    workload = training.shared / "training" / "poisoned"
    shutil.copytree(TINY, workload)
    (workload / "prepare.sh").write_text(WITH_REQUIREMENTS + SPAWNS)
    webhook.write_text("http://127.0.0.1:9/none")
    webhook.chmod(0o600)
    env = {"workload": "poisoned", "NOTIFY": "webhook", "NOTIFY_FILE": str(webhook)}
    for max_steps in ("4", "8"):  # the second job also checks a checkpoint
        job = training.submit("poisoned", f"--chdir={folder}", MAX_STEPS=max_steps, **env)
        output = training.wait(job, state="COMPLETED")
        assert ("report: " in output, "no notification of this was sent" in output) == (True, True)
    assert not ran.exists(), ran.read_text()


def test_ranks_begin_where_the_tree_does(training: Training) -> None:
    tree = training.slurm.layout.conf.with_name("topology.conf")
    tree.write_text(f"SwitchName=leaf Nodes={','.join(reversed(training.slurm.node_names))}\n")
    training.run("tree")
    tree.unlink()
    first, second = re.findall(r"\d+(?=[],])", (training.run_dir("tree") / "starts").read_text().split()[3])
    assert (int(first) > int(second), steps(training, "tree")) == (True, list(range(1, 9)))


def test_a_second_job_of_a_run_is_refused(training: Training) -> None:
    first = training.submit("twice", "--nodes=1", MAX_STEPS="1000")
    training.wait_for_step(first, "twice", 1)
    said = training.wait(training.submit("twice", "--nodes=1"), state="FAILED")
    assert f"job {first} already trains the run twice" in said
    assert f"scancel {first}" in said
    done = len(training.metrics("twice"))
    training.wait_for_step(first, "twice", done + 1)
    training.end(first)


def test_one_slurm_task_a_rank(training: Training) -> None:
    training.run("tasks", LAUNCHER="srun", MAX_STEPS="2", NPROC_PER_NODE="2")
    world = {name: (training.run_dir("tasks") / f"world-{name}").read_text() for name in range(4)}
    assert world == {0: "0 4", 1: "1 4", 2: "0 4", 3: "1 4"}


def test_intel_mpi_starts_ranks_and_scancel_ends_them(training: Training) -> None:
    workload = training.shared / "training" / "tiny-mpi"
    shutil.copytree(TINY, workload)
    (workload / "requirements.txt").write_text("impi-rt==2021.18.1\n")
    (workload / "prepare.sh").write_text(WITH_REQUIREMENTS)
    own = {"workload": "tiny-mpi", "LAUNCHER": "mpirun"}
    job_id = training.submit("mpi", MAX_STEPS="1000", NPROC_PER_NODE="2", **own)
    run_dir = training.shared / "runs" / "tiny-mpi" / "mpi"
    # Rank 0 makes an empty metrics.jsonl at its start, and fills it when it has met the others.
    metrics = run_dir / "metrics.jsonl"
    wait_until(lambda: metrics.is_file() and metrics.read_text() != "", timeout_s=120, what="no step")
    assert [(run_dir / f"world-{rank}").read_text() for rank in range(4)] == ["0 4", "1 4", "0 4", "1 4"]
    training.end(job_id)
    # Hydra ends ranks that have had the time to save, or not.
    wait_for_words(training, job_id, "continue it, unless Slurm has queued it again")
    assert training.slurm.job_state(job_id) == "CANCELLED"


def test_a_strict_run_on_tcp_is_refused(training: Training) -> None:
    """Its checkpoint is kept; another job continues with a warning."""
    run = "strict"
    output = training.run(run, STRICT_NETWORK="1", MAX_STEPS="4", **EFA)
    assert "network between the nodes: Libfabric" in output
    # A saved step would be a reason to start again.
    job_id = training.submit(run, STRICT_NETWORK="1", CHECKPOINT_EVERY="1", **TCP)
    output = training.wait(job_id, state="FAILED")
    found = re.search(r"rank 0: (NCCL sends over TCP \(NET/Socket\) on .*4 EFA cards each: )", output)
    assert found, output
    assert f"not started again: {found[1]}" in output
    assert f"continue from step 4: TRAINING_SHARED={training.shared} RUN_NAME={run} sbatch --nodes" in output
    run_dir, checkpoints = training.run_dir(run), training.checkpoints(run)
    assert (run_dir / "outcome").read_text().startswith(f"refused {found[1]}")
    assert (checkpoints / "latest_step").read_text().strip() == "4"
    assert sorted(path.name for path in checkpoints.glob("step-*")) == ["step-000002", "step-000004"]
    assert starts(training, run) == [("0", "0"), ("0", "4")]
    assert (run_dir / "ends").read_text().splitlines()[-1].split()[3] != "0"
    output = training.run(run, **TCP)
    assert (f"WARNING: {found[1]}" in output, "training from step 4" in output) == (True, True)
    assert steps(training, run) == list(range(1, 9))
