"""Training on one GPU in bf16: MFU of gpt2 and of titan, and gpt2 against compiled nanoGPT."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measuring.environments import ABSENT, Baseline, find_baseline, workload_python
from bench.measuring.machine import describe_machine
from bench.measuring.result import Bars, Result, Row, at_least, bar, not_run, spread
from bench.measuring.timing import BaselineError, ratios
from bench.measuring.watched import turns
from bench.subjects.gpt2_programs import Programs, Sizes
from bench.subjects.workloads import Settings, Workload
from training_cluster.catalog.families import family_names, load_family

TITLE = "training on one GPU, in bf16"
ROUNDS = 3
GPT2 = {
    "124M": Sizes(
        layers=12, heads=12, width=768, context=1024, vocab_size=50304, batch=12, steps=40, after=15
    ),
    "345M": Sizes(
        layers=24, heads=16, width=1024, context=1024, vocab_size=50304, batch=8, steps=30, after=15
    ),
}
TITAN: Settings = {
    "model": "llama3",
    "size": "1B",
    "seq_len": 8192,
    "batch_size": 2,
    "activation_checkpointing": "none",
    "compile": "yes",
    "corpus": "machine",
    "vocab_size": 32768,
    "device": "cuda",
    "mixed_precision": "bf16",
    "max_steps": 25,
    "checkpoint_every": 1000,
    "eval_batches": 0,
    "export": "no",
    "log_every": 1,
}
_TITAN_AFTER = 10
_TITAN = "titan 1B"
GOALS = {"gpt2 124M": 45.0, "gpt2 345M": None, _TITAN: 50.0}
"""Goals of MFU, in percent."""
_AS_FAST = 1.0
_NO_GPU = "no GPU"


def measure() -> Result:
    """Measure all rows; without a GPU they are marked as not run."""
    gpu = describe_machine()["gpu"]
    if gpu is None:
        return Result(rows=_not_run(_NO_GPU))
    if why := _unready():
        return Result(rows=_not_run(why))
    peak = peak_tflops(gpu)
    nanogpt = find_baseline("nanoGPT")
    speeds: dict[str, list[float]] = {}
    mfus: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for size, sizes in GPT2.items():
            speeds |= _gpt2(Path(name) / size, size, nanogpt)
            mfus[f"gpt2 {size}"] = [
                100 * speed * flops_per_token(sizes) / (peak * 1e12) for speed in speeds[f"gpt2 {size}"]
            ]
        mfus[_TITAN] = _titan(Path(name) / "titan", peak)
    return Result(
        rows=[
            *(_mfu_row(name, values) for name, values in mfus.items()),
            *_against(speeds, there=bool(nanogpt)),
        ],
        figures={"tokens_per_s": speeds, "mfu_percent": mfus, "peak_tflops": peak},
        picture=Bars(
            title=f"MFU on one {gpu}, bf16: more is better",
            x_label=f"% of {peak:g} TFLOP/s, dense",
            bars=[bar(name, values) for name, values in mfus.items()],
        ),
        notes=[
            "MFU counts 6N + 12LHQT operations a token (PaLM, arXiv 2204.02311, appendix B). gpt2 and "
            "nanoGPT have the same sizes, batch and tokens; both are compiled.",
            *([nanogpt.note] if nanogpt else []),
        ],
    )


def peak_tflops(gpu: str) -> float:
    """Return the dense bf16 peak of a GPU, from the catalog of families.

    Raises:
        BaselineError: no family has this GPU.
    """
    for name in family_names():
        accelerator = load_family(name).accelerator
        chip = accelerator.name.removeprefix("NVIDIA ").partition(" ")[0]
        if accelerator.kind == "gpu" and accelerator.peak_bf16_tflops and re.search(rf"\b{chip}\b", gpu):
            return accelerator.peak_bf16_tflops
    raise BaselineError(f"{gpu}: its peak is not known, since no family of cluster_configs/ has such a GPU.")


def flops_per_token(sizes: Sizes) -> float:
    """Return the operations of the forward and the backward pass, per token."""
    return 6.0 * sizes.parameters + 12.0 * sizes.layers * sizes.width * sizes.context


def _unready() -> str:
    """Return the reason why the workloads cannot train on this machine's GPU; empty if they can."""
    for workload in ("gpt2", "titan"):
        try:
            python = workload_python(workload)
        except BaselineError as error:
            print(error, file=sys.stderr)
            return (
                f"the environment of {workload} cannot be made here: pip needs the package index, or "
                "TRAINING_VENVS a folder that has it"
            )
        command = [str(python), "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
        if subprocess.run(command, check=False).returncode:
            return f"the torch of {workload}'s environment sees no GPU"
    return ""


def _not_run(why: str) -> list[Row]:
    mfu = [not_run(_mfu_name(name), f">= {goal:g} %" if goal else "", why) for name, goal in GOALS.items()]
    return [*mfu, *(not_run(_against_name(size), f">= {_AS_FAST:g}x", why) for size in GPT2)]


def _mfu_name(name: str) -> str:
    return f"{name}, MFU on one GPU"


def _against_name(size: str) -> str:
    return f"gpt2 {size} against nanoGPT with compile, tokens/s"


def _mfu_row(name: str, values: list[float]) -> Row:
    goal = GOALS[name]
    if goal is None:
        return Row(name=_mfu_name(name), measured=spread(values, " %", 1))
    return at_least(_mfu_name(name), values, goal, " %")


def _against(speeds: dict[str, list[float]], *, there: bool) -> list[Row]:
    if not there:
        return [not_run(_against_name(size), f">= {_AS_FAST:g}x", ABSENT) for size in GPT2]
    return [
        at_least(_against_name(size), ratios(speeds[f"gpt2 {size}"], speeds[f"nanoGPT {size}"]), _AS_FAST)
        for size in GPT2
    ]


def _gpt2(folder: Path, size: str, nanogpt: Baseline | None) -> dict[str, list[float]]:
    workload = Workload(name="gpt2", shared=folder)
    threads = os.cpu_count() or 1
    programs = Programs(workload, GPT2[size], threads=threads, device="cuda", precision="bf16")
    works: dict[str, Callable[[], float]] = {f"gpt2 {size}": programs.ours}
    if nanogpt:
        works[f"nanoGPT {size}"] = programs.nanogpt(nanogpt, compiled=True)
    return turns(works, rounds=ROUNDS)


def _titan(folder: Path, peak: float) -> list[float]:
    """Return the MFU in the run's own metrics, in percent."""
    workload = Workload(name="titan", shared=folder)
    settings = {**TITAN, "accelerator_peak_tflops": peak}
    workload.prepare("data", settings)
    found = []
    for number in range(ROUNDS):
        run = f"run-{number}"
        (workload.run_dir(run)).mkdir(parents=True)
        note = workload.run_dir("data") / "data.json"
        (workload.run_dir(run) / "data.json").write_bytes(note.read_bytes())
        workload.train(run, settings)
        found.append(100 * statistics.median(row["mfu"] for row in workload.metrics(run)[_TITAN_AFTER:]))
    return found
