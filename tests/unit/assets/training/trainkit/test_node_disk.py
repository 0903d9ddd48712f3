"""Folders of node-local checkpoints, and which step is taken; ranks use them in test_local_checkpoints.py."""

import os
from pathlib import Path

import pytest
from trainkit.node_disk import Key, Transfer, job_folder, newest_of_all, remove_others, transfers


def test_a_folder_that_others_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part may contain code, and all users write to the local disks."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    for name, harm in (
        ("open", lambda own: own.chmod(0o777)),
        ("link", lambda own: (own.rmdir(), own.symlink_to(tmp_path))),
    ):
        (disk := tmp_path / name).mkdir()
        monkeypatch.setenv("SCRATCH", str(disk))
        folder = job_folder()
        assert folder == disk / f"checkpoints-{os.getuid()}" / "7-n1"
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        folder.rmdir()
        harm(folder.parent)
        with pytest.raises(PermissionError, match="is of another user, or others may write to it"):
            job_folder()


def test_a_node_without_disks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", str(tmp_path / "none")):
        monkeypatch.setenv("SCRATCH", value)
        with pytest.raises(FileNotFoundError):
            job_folder()
    monkeypatch.setenv("TRAINING_REHEARSAL", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert job_folder().is_relative_to(tmp_path)


def test_the_newest_whole_step_of_one_start() -> None:
    old, other, new, half = Key(4, 1), Key(6, 0), Key(6, 1), Key(8, 1)
    held = [{old: ["a"], new: ["a"], other: ["a"], half: ["a"]}, {old: ["b"], new: ["b"], half: ["a"]}]
    for first, last, found in ((1, 9, new), (6, 6, new), (1, 5, old), (7, 9, None), (1, 3, None)):
        assert newest_of_all(held, ["a", "b"], first=first, last=last) == found
    assert newest_of_all([held[0], {**held[1], new: []}], ["a", "b"], first=1, last=9) == old


def test_each_node_gets_its_part_once() -> None:
    held, wanted = [{"all"}, set(), {"all"}, set()], ["all"] * 8
    assert transfers(held, wanted, ranks=2) == [Transfer("all", 1, 3), Transfer("all", 5, 7)]
    parts = [str(rank) for rank in range(4)]
    assert transfers([{"0", "1", "3"}, {"2"}], parts, ranks=2) == [Transfer("3", 1, 3)]


def test_a_later_starts_parts_stay(tmp_path: Path) -> None:
    keys = [Key(4, 1), Key(6, 1), Key(6, 0), Key(2, 2)]
    for key in keys:
        (tmp_path / key.name).mkdir()
    remove_others(tmp_path, {Key(6, 1)}, start=1)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-000002.2", "step-000006.1"]
