"""Training on CPUs: gpt2 against nanoGPT."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.measuring.environments import ABSENT, Baseline, find_baseline
from bench.measuring.programs import ratios, turns
from bench.measuring.result import Result, at_least
from bench.subjects.gpt2_programs import Programs, Sizes
from bench.subjects.workloads import Workload

TITLE = "training on CPUs, tokens a second"
ROUNDS, COMPILED_ROUNDS = 3, 2
SIZES = Sizes(layers=6, heads=6, width=384, context=256, vocab_size=2048, batch=4, steps=14, after=4)
_AS_FAST, _COMPILED_AS_FAST = 1.0, 1.1
_COMPILER = "no C++ compiler"


def measure() -> Result:
    """Alternate the programs, then their compiled forms."""
    threads = psutil.cpu_count(logical=False) or 1
    nanogpt = find_baseline("nanoGPT")
    with tempfile.TemporaryDirectory() as folder:
        speeds = _gpt2(Path(folder) / "gpt2", nanogpt, threads=threads)
    ours = speeds["gpt2"]
    rows = [
        at_least(
            "gpt2 against nanoGPT, tokens/s",
            ratios(ours, speeds.get("nanoGPT", [])),
            _AS_FAST,
            absent=ABSENT,
        ),
        at_least(
            "gpt2 against nanoGPT, both compiled, tokens/s",
            ratios(speeds.get("gpt2, compiled", []), speeds.get("nanoGPT, compiled", [])),
            _COMPILED_AS_FAST,
            absent=_COMPILER if nanogpt else ABSENT,
        ),
    ]
    return Result(
        rows=rows,
        figures={"tokens_per_s": speeds, "threads": threads},
        notes=_notes(nanogpt, threads=threads),
    )


def _gpt2(folder: Path, nanogpt: Baseline | None, *, threads: int) -> dict[str, list[float]]:
    workload = Workload(name="gpt2", shared=folder)
    programs = Programs(workload, SIZES, threads=threads, device="cpu", precision="no")
    works: dict[str, Callable[[], float]] = {"gpt2": programs.ours}
    if nanogpt:
        works["nanoGPT"] = programs.nanogpt(nanogpt, compiled=False)
    speeds = turns(works, rounds=ROUNDS)
    if nanogpt and _has_compiler():
        compiled = {
            "gpt2, compiled": lambda: programs.ours(compiled=True),
            "nanoGPT, compiled": programs.nanogpt(nanogpt, compiled=True),
        }
        speeds |= turns(compiled, rounds=COMPILED_ROUNDS)
    return speeds


def _has_compiler() -> bool:
    """Return whether torch.compile finds a C++ compiler, which it needs for CPUs."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def _notes(nanogpt: Baseline | None, *, threads: int) -> list[str]:
    cores = f"{os.cpu_count()} CPUs, {threads} threads"
    return [
        f"Each speed is that of the median step after {SIZES.after} warm-up steps, on {cores}. gpt2 and "
        "nanoGPT use the same model size, batch and tokens (text files of this machine), float32, AdamW "
        "and gradient clipping, and print each step.",
        *([nanogpt.note] if nanogpt else []),
    ]
