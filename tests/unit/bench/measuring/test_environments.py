"""The other programs that ours are compared with, and their Python environments."""

import subprocess
from pathlib import Path

import pytest

from bench import training_gpu
from bench.measuring import environments
from bench.measuring.timing import BaselineError


class TestBaselines:
    def test_without_baselines_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("BASELINES", raising=False)
        assert environments.find_baseline("nanoGPT") is None

    def test_a_folder_that_is_not_there_is_told(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("BASELINES", str(tmp_path / "none"))
        with pytest.raises(BaselineError, match=r"no such folder.*\n.*BASELINES=dir"):
            environments.find_baseline("nanoGPT")

    def test_another_commit_than_the_pinned_one_is_said(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("BASELINES", str(tmp_path))
        folder = tmp_path / "nanoGPT"
        commit = ["-c", "user.name=a", "-c", "user.email=a", "commit", "--quiet", "--allow-empty", "-m", "x"]
        for arguments in (["init", "--quiet"], commit):
            folder.mkdir(exist_ok=True)
            subprocess.run(["git", *arguments], cwd=folder, check=True)
        found = environments.find_baseline("nanoGPT")
        assert found and "which differs from the pinned 3adf61e154c3" in found.note
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True).stdout
        monkeypatch.setitem(environments.PINNED, "nanoGPT", head.strip())
        (folder / "mine").touch()
        found = environments.find_baseline("nanoGPT")
        assert found and found.note.endswith("as pinned, with local changes.")

    def test_a_folder_without_git_is_of_no_known_commit(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("BASELINES", str(tmp_path))
        (tmp_path / "nanoGPT").mkdir()
        found = environments.find_baseline("nanoGPT")
        assert found and "unknown commit" in found.note


@pytest.mark.slow
def test_without_a_package_index_each_row_says_that_the_environments_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training_gpu, "describe_machine", lambda: {"gpu": "NVIDIA H200"})
    monkeypatch.setattr(environments, "VENVS", tmp_path)
    # As on a machine without network: pip finds nothing.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    rows = training_gpu.measure().rows
    assert {row.measured for row in rows} == {
        "not run: the environment of gpt2 cannot be made here: pip needs the package index, or "
        "TRAINING_VENVS a folder that has it"
    }
    assert "could not install" in capsys.readouterr().err
