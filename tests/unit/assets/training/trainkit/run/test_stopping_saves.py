"""Steps after which a run saves: as set, or more often where a spot node's notice is too short."""

import itertools
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, settings, stopping
from training_cluster.paths import TRAINING

# A model of 8 billion parameters in fp32 with AdamW's two moments: 330 s at 292 MB/s.
BYTES = 96_400_000_000
STEP_S = 20.0
# 330 s are 5 % of 6,603 s.
LOWERED = 331


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A job of spot nodes with the default file system, whose steps take STEP_S."""
    for name, value in {"SHARED_MBPS": "292", "KILL_WAIT_S": "600", "CAPACITY": "spot"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CHECKPOINT_EVERY", raising=False)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    clock = itertools.count(0.0, STEP_S)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    space = shutil._ntuple_diskusage(10**13, 0, 10**13)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: space)
    return monkeypatch


def own(number: int) -> int:
    return number


def saved_after(
    root: Path,
    *,
    steps: int = 4000,
    every: int = 1000,
    size: int = BYTES,
    rank: int = 0,
    agree: Callable[[int], int] = own,
) -> list[int]:
    run = a_run(root, rank=rank)
    given = settings.TrainSettings(max_steps=steps, checkpoint_every=every)
    found = stopping.Saves(run, given, checkpoint_bytes=size, agree=agree)
    return [step for step in range(1, steps + 1) if found.due(step)]


def test_a_spot_node_s_run_saves_more_often_from_its_eleventh_step_on_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert saved_after(tmp_path) == [*range(LOWERED, 4000, LOWERED), 4000]
    warned, _of_scancel, lowered = capsys.readouterr().out.splitlines()
    assert "takes about 330 s" in warned
    assert "the notice of a spot node" in warned
    assert "Lower CHECKPOINT_EVERY (this run does so after its first steps, where it helps)" in warned
    assert lowered.startswith(
        f"saving every {LOWERED} steps (110.3 minutes) instead of 1000: a checkpoint takes"
    )
    assert "a CHECKPOINT_EVERY that you set is kept" in lowered


def test_the_first_rank_decides_for_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    def agree(number: int) -> int:
        asked.append(number)
        return 7

    assert saved_after(tmp_path, steps=20, rank=1, agree=agree) == [14, 20]
    assert asked == [0], "once, and another rank's own times do not count"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "value"), [("CAPACITY", "ondemand"), ("CHECKPOINT_EVERY", "1000"), ("SHARED_MBPS", "")]
)
def test_elsewhere_and_with_a_setting_of_the_user_s_own_it_saves_as_set(
    tmp_path: Path, job: pytest.MonkeyPatch, name: str, value: str
) -> None:
    job.setenv(name, value)
    assert saved_after(tmp_path) == [1000, 2000, 3000, 4000]


@pytest.mark.parametrize("words", [["--checkpoint-every", "1000"], ["--checkpoint-every=1000"]])
def test_an_argument_is_a_setting_too(tmp_path: Path, job: pytest.MonkeyPatch, words: list[str]) -> None:
    job.setattr(sys, "argv", ["train.py", *words])
    assert saved_after(tmp_path) == [1000, 2000, 3000, 4000]


def test_a_checkpoint_that_fits_the_notice_and_a_run_that_saves_often_enough_stay_as_they_are(
    tmp_path: Path,
) -> None:
    assert saved_after(tmp_path, size=BYTES // 4) == [1000, 2000, 3000, 4000]
    assert saved_after(tmp_path, steps=600, every=200) == [200, 400, 600]


def test_a_run_without_the_space_for_its_checkpoints_ends_on_the_first_rank(tmp_path: Path) -> None:
    # Those that are kept, and one that is being written.
    assert saved_after(tmp_path, size=10**13 // 3)
    with pytest.raises(SystemExit, match=r"checkpoints need 10002\.0 GB .* has 10000\.0 GB free"):
        saved_after(tmp_path, size=3_334_000_000_000)
    saved_after(tmp_path, size=3_334_000_000_000, rank=1)


WORKLOADS = [
    *sorted(file.parent for file in TRAINING.glob("*/settings.py")),
    TRAINING.parents[1] / "ops" / "workload_template",
]


@pytest.mark.parametrize("folder", WORKLOADS, ids=lambda folder: folder.name)
def test_each_workload_saves_by_it(folder: Path) -> None:
    texts = [file.read_text() for file in folder.glob("*.py")]
    assert any(" Saves(" in text for text in texts)
    assert any("aves.due(" in text for text in texts)
    assert not any("% settings.checkpoint_every" in text for text in texts)
