"""Checkpoints: complete or absent, kept as long as they are needed, and not taken without all their files."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, checkpoints, save
from training_cluster.paths import TRAINING


def test_a_checkpoint_is_whole_or_not_there_and_is_told_to_the_job(tmp_path: Path) -> None:
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


def test_a_step_that_is_saved_already_stays_as_it_is(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    first = save(run, 5)
    (first / "weights").write_text("f")
    assert save(run, 5) == first
    assert (first / "weights").read_text() == "f"
    assert not list(run.checkpoint_dir.glob(".*"))


def test_too_little_space_for_checkpoints_is_told_before_the_first_step(tmp_path: Path) -> None:
    checkpoints.check_space(tmp_path, 1)
    with pytest.raises(SystemExit, match=r"checkpoints need 1000000000\.0 GB .* GB free"):
        checkpoints.check_space(tmp_path, 10**18)


def truncate(checkpoint: Path) -> None:
    (checkpoint / "weights").write_text("")


def lose_a_file(checkpoint: Path) -> None:
    (checkpoint / "weights").unlink()


def lose_the_label(checkpoint: Path) -> None:
    (checkpoint / "checkpoint.json").unlink()


def have_a_file_for_a_folder(checkpoint: Path) -> None:
    label = checkpoint / "checkpoint.json"
    label.write_text(json.dumps(json.loads(label.read_text()) | {"files": {"weights/part": 2}}))


def link_a_file_to_itself(checkpoint: Path) -> None:
    lose_a_file(checkpoint)
    (checkpoint / "weights").symlink_to("weights")


def link_the_label_to_itself(checkpoint: Path) -> None:
    lose_the_label(checkpoint)
    (checkpoint / "checkpoint.json").symlink_to("checkpoint.json")


def fill_the_label_with_nuls(checkpoint: Path) -> None:
    label = checkpoint / "checkpoint.json"
    label.write_bytes(bytes(label.stat().st_size))


DAMAGE = {
    truncate: "weights has 0 bytes instead of 2",
    lose_a_file: "weights is missing",
    have_a_file_for_a_folder: "weights/part is missing",
    link_a_file_to_itself: "weights cannot be read: Too many levels of symbolic links",
    lose_the_label: "checkpoint.json is missing",
    link_the_label_to_itself: "checkpoint.json is damaged: [Errno 40] Too many levels of symbolic links",
    fill_the_label_with_nuls: "checkpoint.json is damaged: Expecting value",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.items(), ids=[each.__name__ for each in DAMAGE])
def test_the_checkpoint_before_an_incomplete_one_is_taken_and_a_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], said: str
) -> None:
    run = a_run(tmp_path)
    good, bad = save(run, 10), save(run, 20)
    damage(bad)
    assert checkpoints.newest(run.checkpoint_dir) == checkpoints.resume_from(run) == good
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith(f"checkpoints: {bad} is incomplete ({said}"), line
    assert line.endswith(f"): continuing from {good}")


def test_a_run_with_incomplete_checkpoints_only_ends_instead_of_beginning_anew(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    truncate(save(run, 10))
    with pytest.raises(SystemExit, match=r"no checkpoint can be read: .*step-000010 is incomplete \(weights"):
        checkpoints.newest(run.checkpoint_dir)


@pytest.mark.root
def test_a_checkpoint_that_only_its_owner_may_read_is_one_sentence() -> None:
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


def test_checkpoints_of_older_versions_without_a_list_of_files_are_taken(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    save(run, 10)
    older = save(run, 20)
    (older / "checkpoint.json").write_text(json.dumps({"step": 20, "run": str(run.run_dir)}))
    lose_a_file(older)
    assert checkpoints.newest(run.checkpoint_dir) == older


def test_checkpoints_of_a_trainers_own_kind_are_taken_as_they_are(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    for name in ("step-000010", "step-000020"):
        (run.checkpoint_dir / name).mkdir()
    assert checkpoints.newest(run.checkpoint_dir) == run.checkpoint_dir / "step-000020"


def test_the_last_complete_checkpoints_stay_when_later_ones_are_incomplete(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    for step in (10, 20):
        save(run, step)
    truncate(save(run, 30))
    # The step that it was stopped at, now saved by the run that went on from step 20.
    save(run, 25, keep=2)
    assert checkpoints.steps(run.checkpoint_dir) == [20, 25, 30]
    save(run, 30, keep=2)
    assert checkpoints.newest(run.checkpoint_dir) == run.checkpoint_dir / "step-000030"
    assert checkpoints.steps(run.checkpoint_dir) == [25, 30]
    assert not list(run.checkpoint_dir.glob(".*"))


def test_an_incomplete_one_among_those_that_are_kept_does_not_count(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    save(run, 10)
    truncate(save(run, 20))
    save(run, 30, keep=2)
    assert checkpoints.steps(run.checkpoint_dir) == [10, 20, 30]


def test_the_ranks_take_the_checkpoint_that_the_job_has_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path)
    checked = save(run, 10)
    save(run, 20)
    monkeypatch.setenv("START_STEP", "10")
    monkeypatch.setattr(checkpoints, "fault_of", lambda _: pytest.fail("each rank looks at all files"))
    assert checkpoints.resume_from(run) == checked


def test_a_load_that_fails_is_one_sentence(tmp_path: Path) -> None:
    sentence = r"step-000010 cannot be loaded \(EOFError\('torn'\)\)\. If it is damaged, move it away"
    with pytest.raises(SystemExit, match=sentence), checkpoints.loading(tmp_path / "step-000010"):
        raise EOFError("torn")


def check_restart(checkpoint_dir: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Check a restart as job.slurm does on the first node."""
    script = """
        die() { echo "$*"; exit 1; }
        log() { echo "$*"; }
        source "$training/environment.sh"
        source "$training/restarts.sh"
        check_restart
        echo "starts from step $START_STEP"
    """
    env = {"PATH": os.environ["PATH"], "training": str(TRAINING), "CHECKPOINT_DIR": str(checkpoint_dir)}
    env |= {"RUN_DIR": str(checkpoint_dir), "TRAINING_PYTHON": sys.executable, "MAX_RESTARTS": "3", **more}
    ended = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(ended, env=env, capture_output=True, text=True)


def test_the_job_starts_from_the_step_of_the_checkpoint_that_is_taken(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert check_restart(run.checkpoint_dir).stdout == "starts from step 0\n"
    save(run, 10)
    bad = save(run, 20)
    truncate(bad)
    done = check_restart(run.checkpoint_dir)
    assert done.stdout == "starts from step 10\n", done.stderr
    assert (run.checkpoint_dir / "latest_step").read_text() == "10\n"
    (line,) = done.stderr.splitlines()
    assert f"{bad} is incomplete (weights has 0 bytes instead of 2)" in line
    truncate(run.checkpoint_dir / "step-000010")
    done = check_restart(run.checkpoint_dir)
    assert done.returncode == 1
    assert "checkpoints.py on " in done.stderr
    assert ": no checkpoint can be read: " in done.stderr


def change_bytes(checkpoint: Path) -> None:
    (checkpoint / "weights").write_text("xx")


def test_changed_bytes_cost_a_checkpoint(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    save(run, 10)
    bad = save(run, 20)
    assert check_restart(run.checkpoint_dir).stdout == "starts from step 20\n"
    change_bytes(bad)
    unread = check_restart(run.checkpoint_dir, VERIFY_DATA="no")
    assert (unread.stdout, unread.stderr) == ("starts from step 20\n", "")
    for _ in range(2):
        done = check_restart(run.checkpoint_dir)
        assert done.stdout == "starts from step 10\n", done.stderr
        assert f"{bad} is incomplete (weights has other bytes than when it was saved; " in done.stderr
    assert save(run, 20) == bad
    assert check_restart(run.checkpoint_dir).stdout == "starts from step 20\n", "the run has replaced it"


def test_a_run_with_changed_checkpoints_only_ends(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    change_bytes(save(run, 10))
    for _ in range(2):
        done = check_restart(run.checkpoint_dir)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no checkpoint can be read: " in done.stderr
        assert "Traceback" not in done.stderr


def test_a_checkpoint_that_cannot_be_marked_ends_the_start(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    change_bytes(save(run, 10))
    # Stands for a full disk, or for a folder of root from a bucket.
    (run.checkpoint_dir / "step-000010" / "damaged").mkdir()
    done = check_restart(run.checkpoint_dir)
    assert (done.returncode, done.stdout) == (1, "")
    assert "damaged cannot be written there (Is a directory): move the folder away" in done.stderr
    assert "Traceback" not in done.stderr


def test_checkpoints_without_sums_are_used_with_a_line(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    label = save(run, 10) / "checkpoint.json"
    label.write_text(json.dumps({"step": 10, "run": str(run.run_dir), "files": {"weights": 2}}))
    done = check_restart(run.checkpoint_dir)
    assert done.stdout == "starts from step 10\n"
    assert done.stderr.count("step-000010 is of an older version, without sums: used unchecked") == 1


def test_a_run_whose_checkpoints_were_all_moved_away_says_that_it_begins_at_step_0(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    save(run, 10).rename(tmp_path / "damaged")
    said = check_restart(run.checkpoint_dir).stdout
    assert "has no checkpoint any more, so the training begins at step 0, not at step 10\n" in said
    assert said.endswith("starts from step 0\n")
    # A trainer with its own kind of checkpoint writes the step by itself.
    (run.checkpoint_dir / "latest_step").write_text("7\n")
    (run.checkpoint_dir / "model.pt").touch()
    assert check_restart(run.checkpoint_dir).stdout == "starts from step 7\n"
