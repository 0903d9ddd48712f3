"""Benchmarks of training, data and checkpoints: figures, and messages where something is missing."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench import checkpoint, data, training_cpu, training_gpu
from bench.baselines.fairseq_command import single_process
from bench.measuring import environments
from bench.measuring.timing import BaselineError
from bench.measuring.watched import Watched, turns, watch
from bench.subjects import corpus
from bench.subjects.gpt2_programs import Sizes
from bench.subjects.preparations import Text

SIZES = Sizes(layers=12, heads=12, width=768, context=1024, vocab_size=50304, batch=12, steps=2, after=1)


def watched(*lines: tuple[float, str]) -> Watched:
    return Watched(seconds=1.0, lines=lines)


def shell(script: str, tmp_path: Path, **options: bool | float) -> Watched:
    return watch(["bash", "-c", script], cwd=tmp_path, environment=os.environ, **options)  # type: ignore[arg-type]


class TestWatched:
    def test_seconds_a_step_are_the_median_after_the_warm_up(self) -> None:
        lines = [(0.0, "step 1: loss"), (9.0, "step 2: loss"), (10.0, "step 3: loss"), (11.0, "step 4: loss")]
        assert watched(*lines, (99.0, "step 5: loss"), (100.0, "step 6: loss")).step_s(
            r"^step (\d+): loss", after=2
        ) == pytest.approx(1.0)

    def test_lines_that_come_every_few_steps_count_as_so_many(self) -> None:
        found = watched((1.0, "update 10"), (6.0, "update 20")).step_s(r"update (\d+)", after=10)
        assert found == pytest.approx(0.5)

    def test_no_lines_of_steps_are_an_error_that_shows_what_came(self) -> None:
        with pytest.raises(BaselineError, match="something else"):
            watched((1.0, "something else")).step_s(r"step (\d+)", after=0)

    def test_a_line_that_never_came_is_an_error(self) -> None:
        with pytest.raises(BaselineError, match="resuming"):
            watched((1.0, "begin")).at("resuming")


class TestWatch:
    def test_lines_are_timed_as_they_come(self, tmp_path: Path) -> None:
        found = shell("echo a; sleep 0.3; echo b", tmp_path)
        assert found.at("b") - found.at("a") > 0.2
        assert found.seconds >= found.at("b")

    def test_a_failure_says_code_and_last_words(self, tmp_path: Path) -> None:
        with pytest.raises(BaselineError, match=r"(?s)exit code 3.*no such corpus"):
            shell("echo no such corpus >&2; exit 3", tmp_path)

    def test_a_program_that_takes_too_long_ends_with_its_children(self, tmp_path: Path) -> None:
        with pytest.raises(BaselineError, match="no end after"):
            shell("sleep 71.7 & sleep 71.7", tmp_path, timeout_s=0.5)
        assert not [
            each for each in psutil.process_iter(["cmdline"]) if "71.7" in (each.info["cmdline"] or [])
        ]

    def test_memory_is_that_of_all_processes_together(self, tmp_path: Path) -> None:
        hold = f"{sys.executable} -c 'import time; x = bytearray(60_000_000); time.sleep(0.8)'"
        found = shell(f"{hold} & {hold} & wait", tmp_path, memory=True)
        assert 120_000_000 < found.peak_bytes < 200_000_000


def test_every_second_round_goes_the_other_way_round() -> None:
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = turns({"a": lambda: work("a"), "b": lambda: work("b")}, rounds=2)
    assert order == ["a", "b", "b", "a"]
    assert found == {"a": [1.0, 4.0], "b": [2.0, 3.0]}


class TestStalls:
    def test_what_a_checkpoint_adds_is_found_in_the_step_behind_it(self) -> None:
        # Steps of 1 s; checkpoints after steps 4, 8 and 12: the first costs 0.5 s, the second 0.25 s.
        took = [0.0, 1, 1, 1, 1.5, 1, 1, 1, 1.25, 1, 1, 1]
        times = [sum(took[: number + 1]) for number in range(len(took))]
        quiet, found = checkpoint.stalls(times, every=4)
        assert quiet == pytest.approx(1.0)
        assert found == pytest.approx([0.5, 0.25])

    def test_steps_that_are_slow_while_it_is_written_count_too(self) -> None:
        took = [0.0, 1, 1, 1, 1.5, 1.25, 1, 1]
        times = [sum(took[: number + 1]) for number in range(len(took))]
        assert checkpoint.stalls(times, every=4)[1] == pytest.approx([0.75])


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
        assert found and "another one than the pinned 3adf61e154c3" in found.note
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True).stdout
        monkeypatch.setitem(environments.PINNED, "nanoGPT", head.strip())
        (folder / "mine").touch()
        found = environments.find_baseline("nanoGPT")
        assert found and found.note.endswith("as pinned, with changes of its own.")

    def test_a_folder_without_git_is_of_no_known_commit(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("BASELINES", str(tmp_path))
        (tmp_path / "nanoGPT").mkdir()
        found = environments.find_baseline("nanoGPT")
        assert found and "unknown commit" in found.note


def test_rows_of_absent_baselines_are_not_left_out() -> None:
    assert training_cpu._against_nanogpt([1.0], None).measured == "not run: baseline absent"
    rows = data._against("gpt2", "nanoGPT's prepare", [watched()], None)
    assert [row.verdict for row in rows] == ["not run", "not run"]


def test_without_a_gpu_each_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_gpu, "describe_machine", lambda: {"gpu": None})
    rows = training_gpu.measure().rows
    assert {row.measured for row in rows} == {"not run: no GPU"}
    goals = {row.name: row.goal for row in rows}
    assert goals["gpt2 124M, MFU on one GPU"] == ">= 45 %"
    assert goals["llama-fsdp2 1B, MFU on one GPU"] == ">= 50 %"


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


@pytest.mark.parametrize(
    ("gpu", "peak"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA L40S", 362),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_family(gpu: str, peak: float) -> None:
    assert training_gpu.peak_tflops(gpu) == pytest.approx(peak, abs=1)


def test_a_gpu_that_no_family_has_is_told() -> None:
    with pytest.raises(BaselineError, match="GeForce"):
        training_gpu.peak_tflops("NVIDIA GeForce RTX 4090")


def test_parameters_are_those_of_gpt2() -> None:
    # 124,439,808 with 50,257 tokens and 1,024 positions; 47 rows more, and no positions.
    assert SIZES.parameters == 124_439_808 + 47 * 768 - 1024 * 768


def test_fairseq_is_called_without_what_only_several_ranks_need() -> None:
    told = ["data", "--task", "recorded_masked_lm", "--distributed-rank", "0", "--lr", "0.1"]
    told += ["--distributed-no-spawn", "--device-id", "0", "--cpu", "--ddp-backend", "legacy_ddp"]
    assert single_process(told) == ["data", "--task", "masked_lm", "--lr", "0.1", "--cpu"]


def test_made_up_text_is_always_the_same_and_both_formats_hold_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written = corpus.write(tmp_path / name, size_bytes=40_000, files=2)
        assert 40_000 <= written < 50_000
    for file in ("0.txt", "1.txt", "0.jsonl", "1.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "0.txt").read_text() != (tmp_path / "a" / "1.txt").read_text()
    documents = (tmp_path / "a" / "0.txt").read_text().count("\n\n")
    assert documents == len((tmp_path / "a" / "0.jsonl").read_text().splitlines())


def test_what_two_workers_gain_is_counted_without_the_start() -> None:
    def ended(seconds: float) -> list[Watched]:
        return [Watched(seconds=seconds, lines=[], peak_bytes=1_000_000)]

    # 3 s of start; then 10 s of work by one worker, 5 s by two, in all on the largest text.
    texts = {times: Text(folder=Path(), size_bytes=1_000_000 * times) for times in data.GROWTH}
    two = {1: ended(3.0), 4: ended(4.25), 16: ended(8.0)}
    rows = data._own_rows("gpt2", two, {1: ended(3.0), 16: ended(13.0)}, texts)
    assert rows[-1].measured.startswith("2.00x")
    assert [row.verdict for row in rows] == ["", "met", "met", "met"]
