"""Training on one GPU in bf16: MFU of gpt2 and titan, and both against nanoGPT and torchtitan alone."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measuring.environments import ABSENT, Baseline, find_baseline, workload_python
from bench.measuring.machine import describe_machine
from bench.measuring.programs import BaselineError, Command, ratios, turns, watch
from bench.measuring.result import Result, Row, at_least, spread
from bench.subjects.gpt2_programs import Programs, Sizes
from bench.subjects.workloads import TIMEOUT_S, Settings, Workload
from training_cluster.catalog.families import family_names, load_family
from training_cluster.paths import ROOT, TRAINING

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
    "data": "machine",
    "vocab_size": 32768,
    # Each split of this text has more tokens than a sequence.
    "validation_every": 4,
    "device": "cuda",
    # As on a node of a GPU family, for launch.sh's settings of torch.
    "accelerator_kind": "gpu",
    "mixed_precision": "bf16",
    "max_steps": 60,
    "checkpoint_every": 1000,
    "eval_sequences": 0,
    "export": "no",
    "log_every": 1,
}
_TITAN_AFTER = 20
_TITAN, _ALONE = "titan 1B", "torchtitan 1B"
GOALS = {"gpt2 124M": 45.0, "gpt2 345M": None, _TITAN: 50.0}
"""Goals of MFU, in percent."""
_AS_FAST = 1.0
_AS_TORCHTITAN = 0.98
"""Goal of titan's speed over that of torchtitan alone."""
_TORCHTITAN_ALONE = ROOT / "bench" / "baselines" / "torchtitan_alone.py"
_WHAT = (
    "MFU of gpt2 counts 6N + 12LHQT operations a token (PaLM, arXiv 2204.02311, appendix B). That of titan "
    "counts attention within documents alone, as the attention mask does: T is the mean over tokens of the "
    "length of a token's document. gpt2 and nanoGPT have the same sizes, batch and tokens, and are compiled. "
    "torchtitan alone has the model, batch and options of titan, reads the same documents, and writes no "
    "checkpoints."
)


def measure() -> Result:
    """Measure all rows; without a GPU they are marked as not run."""
    gpu = describe_machine()["gpu"]
    if why := _unready() if gpu else "no GPU":
        return Result(rows=list(_rows({}, {}, why)), notes=[_WHAT])
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
        titan = Titan(Path(name) / "titan", peak)
        speeds |= turns({_TITAN: titan.ours, _ALONE: titan.alone}, rounds=ROUNDS)
        mfus[_TITAN] = titan.mfus
    return Result(
        rows=list(_rows(speeds, mfus, ABSENT)),
        figures={"tokens_per_s": speeds, "mfu_percent": mfus, "peak_tflops": peak},
        notes=[_WHAT, *([nanogpt.note] if nanogpt else [])],
    )


def _rows(speeds: Mapping[str, list[float]], mfus: Mapping[str, list[float]], why: str) -> Iterator[Row]:
    """Yield all rows; `why` is the reason of those without figures."""
    for name, goal in GOALS.items():
        title, found = f"{name}, MFU on one GPU", mfus.get(name, [])
        if goal is not None:
            yield at_least(title, found, goal, " %", absent=why)
        elif found:
            yield Row(name=title, measured=spread(found, " %", 1))
        else:
            yield Row(name=title, measured=f"not run: {why}", verdict="not run")
    pairs = {(f"gpt2 {size}", f"nanoGPT {size}", "nanoGPT with compile"): _AS_FAST for size in GPT2}
    for (ours, theirs, shown), goal in {
        **pairs,
        (_TITAN, _ALONE, "torchtitan alone"): _AS_TORCHTITAN,
    }.items():
        found = ratios(speeds.get(ours, []), speeds.get(theirs, []))
        yield at_least(f"{ours} against {shown}, tokens/s", found, goal, absent=why)


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
    raise BaselineError(f"{gpu}: its peak is unknown, since no family of cluster_configs/ has this GPU.")


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


def _gpt2(folder: Path, size: str, nanogpt: Baseline | None) -> dict[str, list[float]]:
    workload = Workload(name="gpt2", shared=folder)
    threads = os.cpu_count() or 1
    programs = Programs(workload, GPT2[size], threads=threads, device="cuda", precision="bf16")
    works: dict[str, Callable[[], float]] = {f"gpt2 {size}": programs.ours}
    if nanogpt:
        works[f"nanoGPT {size}"] = programs.nanogpt(nanogpt, compiled=True)
    return turns(works, rounds=ROUNDS)


class Titan:
    """Runs of the workload titan, and of torchtitan without it; each returns tokens/s."""

    def __init__(self, folder: Path, peak: float) -> None:
        """Prepare data and tokenizer.

        Args:
            peak: peak of the GPU in TFLOP/s, for the MFU in the run's metrics.
        """
        self.mfus: list[float] = []
        """Median MFU of each run of the workload, in percent."""
        self._workload = Workload(name="titan", shared=folder)
        self._settings: Settings = {**TITAN, "accelerator_peak_tflops": peak}
        self._workload.prepare("data", self._settings)
        self._note = self._workload.run_dir("data") / "data.json"
        self._runs = 0

    def ours(self) -> float:
        """Run the workload."""
        self._runs += 1
        run = f"run-{self._runs}"
        self._workload.train_on_data(run, self._settings)
        rows = self._workload.metrics(run)[_TITAN_AFTER:]
        self.mfus.append(100 * statistics.median(row.get("mfu") or 0.0 for row in rows))
        return self._speed(statistics.median(row["step_s"] for row in rows))

    def alone(self) -> float:
        """Run torchtitan's own Trainer."""
        sizes = [self._settings[name] for name in ("size", "seq_len", "batch_size", "max_steps")]
        folder, device = self._workload.shared / "alone", self._settings["device"]
        environment = self._workload.environment("alone", self._settings)
        # torchtitan starts its ranks with this. The loader is titan's.
        environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
        environment["PYTHONPATH"] = f"{TRAINING / 'titan'}:{TRAINING}"
        command: Command = [self._workload.python, _TORCHTITAN_ALONE, *map(str, sizes), self._note, folder]
        watched = watch(
            [*command, str(device)],
            cwd=self._workload.shared,
            environment=environment,
            timeout_s=TIMEOUT_S,
        )
        return self._speed(watched.step_s(r"step: +(\d+)", after=_TITAN_AFTER))

    def _speed(self, step_s: float) -> float:
        """Return the tokens per second at a length of a step."""
        tokens = int(str(self._settings["batch_size"])) * int(str(self._settings["seq_len"]))
        return tokens / step_s
