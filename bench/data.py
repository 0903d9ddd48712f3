"""The preparation of data: its speed and memory as the text grows, and against what other people use."""

import tempfile
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TypeVar

from bench.measuring.environments import ABSENT, find_baseline
from bench.measuring.programs import Watched, ratios
from bench.measuring.result import Result, Row, at_least, at_most, spread
from bench.subjects.preparations import Preparations, Text, make_text, make_vocabulary

TITLE = "preparing data, with one vocabulary"
WORKLOADS = ("gpt2", "roberta", "titan", "gpt2-megatron")
BASE_BYTES = 4_000_000
GROWTH = (1, 4, 16)
ROUNDS = 2
_FLAT, _LINEAR, _TWO, _AS_GOOD = 1.2, 4.4, 1.8, 1.0
_MB, _MIB = 1e6, 2**20
# The workload whose preparation each other program replaces.
_FAIRSEQ = "fairseq's encoder and preprocess"
_NANOGPT = "nanoGPT's prepare"
_MEGATRON = "Megatron's preprocess_data"
AGAINST = {_FAIRSEQ: "roberta", _NANOGPT: "gpt2", _MEGATRON: "gpt2-megatron"}
_AS_FAST = {_FAIRSEQ: 4.0, _NANOGPT: 4.0, _MEGATRON: 2.0}
Key = TypeVar("Key", bound=Hashable)
Work = Callable[[Text, int], Watched]
BySize = dict[str, dict[int, list[Watched]]]
"""Runs of each workload, by the size of its text."""


def measure() -> Result:
    """Measure all workloads on all sizes, then the other programs on the middle size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {times: make_text(folder / f"text-{times}", times * BASE_BYTES) for times in GROWTH}
        vocabulary = make_vocabulary(folder / "vocabulary", texts[GROWTH[1]])
        preparations = Preparations(folder / "runs", vocabulary)
        grown, alone = _grow(preparations, texts)
        theirs, notes = _others(preparations, texts[GROWTH[1]])
    rows = [
        row for workload in WORKLOADS for row in _own_rows(workload, grown[workload], alone[workload], texts)
    ]
    middle = {workload: grown[workload][GROWTH[1]] for workload in WORKLOADS}
    for other, workload in AGAINST.items():
        rows += _against(workload, other, middle[workload], theirs.get(other, []))
    return Result(
        rows=rows,
        figures={
            "text_bytes": {times: text.size_bytes for times, text in texts.items()},
            "two_workers": {name: _raw(by_size) for name, by_size in grown.items()},
            "one_worker": {name: _raw(by_size) for name, by_size in alone.items()},
            "others": _raw(theirs),
        },
        notes=[
            "The text is generated: 30,000 words, with the word frequencies of a natural language. All "
            "programs use the same BPE vocabulary, trained beforehand. The times are those of whole "
            "processes, including imports. Memory is the sum over all processes, sampled ten times a second, "
            "with shared pages counted once. The rows of two workers against one compare the extra time of "
            "16x text over 1x text.",
            "The preparations encode each word once and reuse the result. This text has few distinct words; "
            "real text has more, so it gains less.",
            *notes,
        ],
    )


def _grow(preparations: Preparations, texts: dict[int, Text]) -> tuple[BySize, BySize]:
    """Prepare each workload with two workers on each size, and with one on the smallest and the largest."""
    grown: BySize = {name: {times: [] for times in GROWTH} for name in WORKLOADS}
    alone: BySize = {name: {times: [] for times in (GROWTH[0], GROWTH[-1])} for name in WORKLOADS}
    for name in WORKLOADS:
        preparations.ours(name, texts[GROWTH[0]], workers=2)  # imports are read from the disk once
    for _ in range(ROUNDS):
        for name in WORKLOADS:
            for workers, found in ((2, grown[name]), (1, alone[name])):
                for times, runs in found.items():
                    runs.append(preparations.ours(name, texts[times], workers=workers))
    return grown, alone


def _others(preparations: Preparations, text: Text) -> tuple[dict[str, list[Watched]], list[str]]:
    """Run the other programs that are available; return their runs, and notes that name their commits."""
    works: dict[str, Work] = {_FAIRSEQ: lambda text, workers: preparations.fairseq(text, workers=workers)}
    notes = []
    if nanogpt := find_baseline("nanoGPT"):
        works[_NANOGPT] = preparations.nanogpt(nanogpt)
        notes.append(nanogpt.note)
    if megatron := find_baseline("Megatron-LM"):
        works[_MEGATRON] = preparations.megatron(megatron)
        notes.append(megatron.note)
    found: dict[str, list[Watched]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            found[name].append(work(text, 2))
    return found, notes


def _own_rows(
    workload: str, grown: dict[int, list[Watched]], alone: dict[int, list[Watched]], texts: dict[int, Text]
) -> list[Row]:
    small, middle, large = (grown[times] for times in GROWTH)
    speeds = [texts[GROWTH[-1]].size_bytes / _MB / each.seconds for each in large]
    one, two = _beyond_start(alone), _beyond_start(grown)
    return [
        Row(name=f"{workload}, {GROWTH[-1]}x text, 2 workers", measured=spread(speeds, " MB/s", 1)),
        at_most(f"{workload}, peak memory, 16x text against 1x", ratios(_peaks(large), _peaks(small)), _FLAT),
        at_most(f"{workload}, time, 16x text against 4x", ratios(_seconds(large), _seconds(middle)), _LINEAR),
        at_least(f"{workload}, two workers against one, without the start", ratios(one, two), _TWO),
    ]


def _beyond_start(runs: dict[int, list[Watched]]) -> list[float]:
    """Return the seconds of the largest text beyond the best run of the smallest: fixed costs cancel."""
    start = min(_seconds(runs[GROWTH[0]]))
    return [large - start for large in _seconds(runs[GROWTH[-1]])]


def _against(workload: str, other: str, ours: list[Watched], theirs: list[Watched]) -> list[Row]:
    against = f"{workload} against {other}"
    speeds, peaks = ratios(_seconds(theirs), _seconds(ours)), ratios(_peaks(ours), _peaks(theirs))
    return [
        at_least(f"{against}, bytes/s", speeds, _AS_FAST[other], absent=ABSENT),
        at_most(f"{against}, peak memory", peaks, _AS_GOOD, absent=ABSENT),
    ]


def _seconds(runs: list[Watched]) -> list[float]:
    return [each.seconds for each in runs]


def _peaks(runs: list[Watched]) -> list[float]:
    return [each.peak_bytes / _MIB for each in runs]


def _raw(runs: Mapping[Key, list[Watched]]) -> dict[Key, dict[str, list[float]]]:
    return {key: {"seconds": _seconds(each), "peak_mib": _peaks(each)} for key, each in runs.items()}
