"""Checkpoints: complete or absent, kept as long as they are needed, and not taken without all their files."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from trainkit.run import checkpoints, outcome
from trainkit.run.run import Run

from tests.unit.assets.training.trainkit.run.runs import a_run, save
from training_cluster.paths import TRAINING


def test_a_checkpoint_is_whole_or_absent(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert checkpoints.newest(run.checkpoint_dir) is None
    written = checkpoints.partial(run.checkpoint_dir, 7)
    written.mkdir()
    assert checkpoints.newest(run.checkpoint_dir) is None, "one that is being written is none"
    checkpoints.clear_partials(run.checkpoint_dir)
    assert not written.exists()
    final = save(run, 1_000_007)
    assert checkpoints.newest(run.checkpoint_dir) == final == run.checkpoint_dir / "step-1000007"
    assert (run.checkpoint_dir / "latest_step").read_text() == "1000007\n"
    (final / "weights").write_text("1" * 7)
    assert save(run, 1_000_007) == final
    assert (final / "weights").read_text() == "1" * 7, "a step that is saved already stays as it is"
    assert not list(run.checkpoint_dir.glob(".*"))


def test_only_the_runs_own_oldest_checkpoints_go(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    mine = run.checkpoint_dir / "step-000001"
    mine.mkdir()
    (mine / "weights").write_text("mine")
    copied = save(a_run(tmp_path, name="other"), 2)
    copied.rename(run.checkpoint_dir / copied.name)
    (run.checkpoint_dir / "step-x").mkdir()
    for step in (10, 20, 30):
        save(run, step)
    assert checkpoints.steps(run.checkpoint_dir) == [1, 2, 20, 30]
    save(run, 40, keep=0)
    assert checkpoints.steps(run.checkpoint_dir) == [1, 2, 40], "the newest stays, whatever keep says"
    assert (run.checkpoint_dir / "step-x").is_dir()


def truncate(checkpoint: Path) -> None:
    (checkpoint / "weights").write_text("")


# What a shell does in the folder of a checkpoint.
DAMAGE = {
    "truncate -s 0 weights": "weights has 0 bytes instead of 2",
    "rm weights": "weights is missing",
    "rm part/0; rmdir part; touch part": "part/0 is missing",
    "sed -i s,20,21, checkpoint.json": "checkpoint.json is damaged: it has other bytes than when",
    "rm weights; ln -s weights weights": "weights cannot be read: Too many levels of symbolic links",
    "rm checkpoint.json": "checkpoint.json is missing",
    "f=checkpoint.json; rm $f; ln -s $f $f": "checkpoint.json is damaged: [Errno 40] Too many levels",
    "head -c 99 /dev/zero >checkpoint.json": "checkpoint.json is damaged: Expecting value",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.items(), ids=DAMAGE)
def test_the_checkpoint_before_an_incomplete_one_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, said: str
) -> None:
    run = a_run(tmp_path)
    good, bad = save(run, 10), save(run, 20)
    subprocess.run(["bash", "-c", damage], cwd=bad, check=True)
    assert checkpoints.newest(run.checkpoint_dir) == checkpoints.resume_from(run) == good
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith(f"checkpoints: {bad} is incomplete (")
    assert said in line
    assert line.endswith(f"): continuing from {good}")
    truncate(good)
    with pytest.raises(SystemExit, match=r"no checkpoint can be read: .*step-0000\d0 is incomplete \("):
        checkpoints.newest(run.checkpoint_dir)


@pytest.mark.root
def test_a_checkpoint_of_another_user_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        run = a_run(Path(name))
        save(run, 10)
        save(run, 20).chmod(0o700)
        code = (
            "import sys; sys.path.append(sys.argv.pop(1)); from trainkit.run.checkpoints import main; main()"
        )
        done = subprocess.run(
            [
                *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
                *(sys.executable, "-BIc", code),
                *(str(TRAINING), str(run.checkpoint_dir)),
            ],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert f"{run.checkpoint_dir}/step-000020 belongs to another user" in done.stderr
    assert "Traceback" not in done.stderr


def test_older_and_other_checkpoints_are_taken(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    for name in ("step-000010", "step-000020"):
        (run.checkpoint_dir / name).mkdir()
    assert checkpoints.newest(run.checkpoint_dir) == run.checkpoint_dir / "step-000020", (
        "a trainer's own kind"
    )
    older = save(run, 30)
    (older / "checkpoint.json").write_text(json.dumps({"step": 30, "run": str(run.run_dir)}))
    (older / "weights").unlink()
    assert checkpoints.newest(run.checkpoint_dir) == older, "without a list of files"


def test_incomplete_checkpoints_do_not_count_as_kept(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    for step in (10, 20):
        save(run, step)
    truncate(save(run, 30))
    # The step that it was stopped at, now saved by the run that continued from step 20.
    save(run, 25, keep=2)
    assert checkpoints.steps(run.checkpoint_dir) == [20, 25, 30]
    save(run, 30, keep=2)
    assert checkpoints.newest(run.checkpoint_dir) == run.checkpoint_dir / "step-000030"
    assert checkpoints.steps(run.checkpoint_dir) == [25, 30]
    truncate(save(run, 40))
    save(run, 50, keep=2)
    assert checkpoints.steps(run.checkpoint_dir) == [30, 40, 50]
    assert not list(run.checkpoint_dir.glob(".*"))


def test_ranks_take_the_checkpoint_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(tmp_path)
    checked = save(run, 10)
    save(run, 20)
    monkeypatch.setenv("START_STEP", "10")
    monkeypatch.setattr(checkpoints, "fault_of", lambda _: pytest.fail("each rank looks at all files"))
    assert checkpoints.resume_from(run) == checked


def fails_to_load(run: Run, *, error: Exception) -> str:
    """Have both ranks fail to load the checkpoint from which they continue; what they say."""
    found, said = checkpoints.resume_from(run), set()
    assert found
    for _ in range(2):
        with pytest.raises(SystemExit) as ended, checkpoints.loading(found):
            raise error
        said.add(str(ended.value).partition(": ")[2])
    (sentence,) = said
    return sentence


def test_a_checkpoint_that_fails_to_load_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[], tuple[str, str]]
) -> None:
    run, torn = a_run(tmp_path), EOFError("torn")
    old, good, bad = save(run, 10, keep=3), save(run, 20, keep=3), save(run, 30, keep=3)
    assert fails_to_load(run, error=torn) == f"{bad} cannot be loaded (EOFError: torn).", "an export"
    monkeypatch.setenv("CHECKPOINT_DIR", str(run.checkpoint_dir))
    assert fails_to_load(run, error=RuntimeError("Connection closed by peer")).endswith("closed by peer).")
    assert start() == ("30\n", ""), "another rank was lost"
    said = fails_to_load(run, error=torn)
    assert said.endswith(f"(EOFError: torn): the next start takes {good}, unless you remove {bad}/damaged.")
    step, said = start()
    assert step == "20\n"
    assert f"{bad} is incomplete (the ranks could not load it (EOFError: torn); to try it again, " in said
    assert f", nor could {bad}: look for another cause." in fails_to_load(run, error=torn)
    assert start()[0] == "30\n", "the fault is not the checkpoints'"
    fails_to_load(run, error=torn)
    assert save(run, 30, keep=3) == bad
    assert start()[0] == "30\n", "the run has replaced it"
    # One that has lost its bytes says nothing about the one before.
    truncate(bad)
    assert start()[0] == "20\n"
    assert f"the next start takes {old}" in fails_to_load(run, error=torn)
    shutil.rmtree(bad)
    shutil.rmtree(good)
    assert "To begin at step 0, move it away" in fails_to_load(run, error=torn)


def test_an_older_start_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a node that Slurm cannot reach go on while the job has started again elsewhere."""
    run = a_run(tmp_path)
    for name, value in (("RUN_DIR", str(run.run_dir)), ("SLURM_JOB_ID", "7"), ("START_NUMBER", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CHECKPOINT_DIR", str(run.checkpoint_dir))
    starts = run.run_dir / "starts"
    starts.write_text("0 0 2026-11-22T03:00:00Z n1 7 0\n1 10 2026-11-22T03:10:00Z n1 7 0\n")
    save(run, 20)
    own = checkpoints.partial(run.checkpoint_dir, 30)
    for job, number in (("7", "2"), ("8", "1")):
        with monkeypatch.context() as later:
            later.setenv("SLURM_JOB_ID", job)
            later.setenv("START_NUMBER", number)
            new = checkpoints.partial(run.checkpoint_dir, 30)
        assert new != own
        new.mkdir()
        with starts.open("a") as file:
            file.write(f"{number} 20 2026-11-22T03:20:00Z n2 {job} 1\n")
        own.mkdir()
        for write in (
            lambda: checkpoints.clear_partials(run.checkpoint_dir),
            lambda: checkpoints.publish(own, 30, run=run, keep=2),
            lambda: checkpoints.note_step(run.checkpoint_dir, 30),
            lambda: checkpoints.give_up(run.checkpoint_dir / "step-000020", EOFError("torn")),
            lambda: outcome.diverged(run, 30),
            lambda: outcome.refused(run, "other settings"),
        ):
            with pytest.raises(SystemExit, match=r"has the run now: these older ranks save nothing"):
                write()
        assert new.is_dir(), "the older start removed the files of the newer one"
        shutil.rmtree(own)
    assert checkpoints.steps(run.checkpoint_dir) == [20]
    assert not (run.run_dir / outcome.FILE).exists()


def check_restart(checkpoint_dir: Path) -> subprocess.CompletedProcess[str]:
    """Check a restart as job.slurm does on the first node."""
    script = """
        die() { echo "$*" >&2; exit 1; }
        log() { echo "$*"; }
        run=mine workload=tiny SLURM_JOB_NUM_NODES=2
        source "$training/environment.sh"
        job_script=4
        source "$training/restarts.sh"
        check_restart
        echo "starts from step $START_STEP"
    """
    env = {"PATH": os.environ["PATH"], "training": str(TRAINING), "CHECKPOINT_DIR": str(checkpoint_dir)}
    env |= {"RUN_DIR": str(checkpoint_dir), "TRAINING_PYTHON": sys.executable, "MAX_RESTARTS": "3"}
    ended = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(ended, env=env, capture_output=True, text=True)


def test_a_job_starts_from_a_complete_checkpoint(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    good, bad = save(run, 10), save(run, 20)
    truncate(bad)
    done = check_restart(run.checkpoint_dir)
    assert done.stdout == "starts from step 10\n", done.stderr
    truncate(good)
    done = check_restart(run.checkpoint_dir)
    assert (done.returncode, done.stdout) == (1, "")
    assert ": no checkpoint can be read: " in done.stderr
    assert "Traceback" not in done.stderr
    assert f"continue it by hand: RUN_NAME=mine sbatch --nodes 2 {TRAINING}/job.slurm tiny\n" in done.stderr
    for each in (good, bad):
        each.rename(tmp_path / each.name)
    said = check_restart(run.checkpoint_dir).stdout
    assert "has no checkpoint any more, so the training begins at step 0, not at step 10\n" in said
    assert said.endswith("starts from step 0\n")
    # A trainer with its own kind of checkpoint writes the step by itself.
    (run.checkpoint_dir / "latest_step").write_text("7\n")
    (run.checkpoint_dir / "model.pt").touch()
    assert check_restart(run.checkpoint_dir).stdout == "starts from step 7\n"


@pytest.fixture
def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], tuple[str, str]]:
    """Check a restart in this process: the step that it starts from, and what it prints."""
    folder = a_run(tmp_path).checkpoint_dir
    monkeypatch.setattr(sys, "argv", ["checkpoints.py", str(folder)])

    def check() -> tuple[str, str]:
        checkpoints.main()
        return (folder / "latest_step").read_text(), capsys.readouterr().err

    return check


def test_changed_bytes_cost_a_checkpoint(
    tmp_path: Path, start: Callable[[], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path)
    good, bad = save(run, 10), save(run, 20)
    assert start() == ("20\n", "")
    (bad / "weights").write_text("xx")
    monkeypatch.setenv("VERIFY_DATA", "no")
    assert start() == ("20\n", "")
    monkeypatch.delenv("VERIFY_DATA")
    for _ in range(2):
        step, said = start()
        assert step == "10\n"
        assert f"{bad} is incomplete (weights has other bytes than when it was saved; " in said
    assert save(run, 20) == bad
    assert start() == ("20\n", ""), "the run has replaced it"
    for each in (good, bad):
        (each / "weights").write_text("yy")
    # Stands for a full disk, or for a folder of root from a bucket.
    (bad / "damaged").mkdir()
    with pytest.raises(
        SystemExit, match=r"damaged cannot be written there \(Is a directory\): move the fold"
    ):
        start()


def test_a_folder_without_space_is_named(
    tmp_path: Path, start: Callable[[], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path)
    save(run, 10)
    (run.checkpoint_dir / ".latest_step.partial").symlink_to("/dev/full")
    with pytest.raises(SystemExit, match=rf"{run.checkpoint_dir} cannot be used \(.*No space left"):
        start()


def test_checkpoints_without_sums_are_used(tmp_path: Path, start: Callable[[], tuple[str, str]]) -> None:
    run = a_run(tmp_path)
    label = save(run, 10) / "checkpoint.json"
    label.write_text(json.dumps({"step": 10, "run": str(run.run_dir), "files": {"weights": 2}}))
    step, said = start()
    assert step == "10\n"
    assert said.count("step-000010 is of an older version, without sums: used unchecked") == 1


def test_a_folder_that_takes_no_files_is_named(tmp_path: Path, start: Callable[[], tuple[str, str]]) -> None:
    """As on a read-only file system."""
    run = a_run(tmp_path)
    save(run, 10)
    (run.checkpoint_dir / ".latest_step.partial").mkdir()
    with pytest.raises(SystemExit, match=r"run cannot be used \(.*Is a directory"):
        start()
