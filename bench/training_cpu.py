"""Training on CPUs: gpt2 against nanoGPT and a plain loop, roberta against plain fairseq-train."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from bench.measuring.environments import ABSENT, Baseline, find_baseline
from bench.measuring.programs import ratios, run, turns, watch
from bench.measuring.result import Result, at_least, at_most
from bench.subjects.gpt2_programs import Programs, Sizes
from bench.subjects.workloads import Workload
from training_cluster.paths import ROOT, TRAINING

TITLE = "training on CPUs, tokens a second"
ROUNDS, COMPILED_ROUNDS = 3, 2
SIZES = Sizes(layers=6, heads=6, width=384, context=256, vocab_size=2048, batch=4, steps=14, after=4)
_AS_FAST, _COMPILED_AS_FAST, _OVERHEAD = 1.0, 1.1, 1.02
_COMPILER = "no C++ compiler"
# Wide enough that an update takes tenths of a second, so that the launcher's share can be measured.
ROBERTA = {
    "roberta_layers": 4,
    "roberta_heads": 4,
    "roberta_width": 256,
    "roberta_context": 128,
    "batch_size": 16,
    "max_steps": 25,
    "log_every": 5,
    "checkpoint_every": 1000,
    "eval_sequences": 0,
    "data_workers": 0,
    "corpus": "machine",
    "vocab_size": 2048,
    "device": "cpu",
    "mixed_precision": "no",
}
_WARM_UP = 10
_COMMAND = ROOT / "bench" / "baselines" / "fairseq_command.py"
_UPDATE = r'"num_updates": "(\d+)"'


def measure() -> Result:
    """Alternate the programs of gpt2, then of roberta."""
    threads = psutil.cpu_count(logical=False) or 1
    nanogpt = find_baseline("nanoGPT")
    with tempfile.TemporaryDirectory() as folder:
        speeds = _gpt2(Path(folder) / "gpt2", nanogpt, threads=threads)
        seconds = _roberta(Path(folder) / "roberta", threads=threads)
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
        at_least(
            "gpt2 against a plain transformers loop, tokens/s", ratios(ours, speeds["plain loop"]), _AS_FAST
        ),
        at_most(
            "roberta against bare fairseq-train, seconds an update",
            ratios(seconds["roberta"], seconds["fairseq-train"]),
            _OVERHEAD,
        ),
    ]
    return Result(
        rows=rows,
        figures={"tokens_per_s": speeds, "seconds_an_update": seconds, "threads": threads},
        notes=_notes(nanogpt, threads=threads),
    )


def _gpt2(folder: Path, nanogpt: Baseline | None, *, threads: int) -> dict[str, list[float]]:
    workload = Workload(name="gpt2", shared=folder)
    programs = Programs(workload, SIZES, threads=threads, device="cpu", precision="no")
    works = {"gpt2": programs.ours, "plain loop": programs.plain_loop}
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


def _roberta(folder: Path, *, threads: int) -> dict[str, list[float]]:
    workload = Workload(name="roberta", shared=folder)
    settings = {**ROBERTA, "omp_num_threads": threads}
    workload.prepare("data", settings)
    data = next(file.parent for file in workload.data.glob("*/fairseq/manifest.json"))
    environment = workload.environment("bare", settings)
    printed = run(
        [workload.python, _COMMAND, data, folder / "bare"],
        cwd=folder,
        environment={**environment, "PYTHONPATH": f"{TRAINING / 'roberta'}:{TRAINING}"},
    )
    bare = [workload.python.with_name("fairseq-train"), *json.loads(printed.splitlines()[-1])]
    runs = iter(range(ROUNDS))

    def ours() -> float:
        return workload.train_on_data(f"run-{next(runs)}", settings).step_s(_UPDATE, after=_WARM_UP)

    def theirs() -> float:
        (folder / "bare" / "checkpoint_last.pt").unlink(missing_ok=True)
        return watch(bare, cwd=folder, environment=environment).step_s(_UPDATE, after=_WARM_UP)

    return turns({"roberta": ours, "fairseq-train": theirs}, rounds=ROUNDS)


def _has_compiler() -> bool:
    """Return whether torch.compile finds a C++ compiler, which it needs for CPUs."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def _notes(nanogpt: Baseline | None, *, threads: int) -> list[str]:
    cores = f"{os.cpu_count()} CPUs, {threads} threads"
    return [
        f"Each speed is that of the median step after {SIZES.after} warm-up steps, on {cores}. gpt2, nanoGPT "
        "and the loop use the same model size, batch and tokens (text files of this machine), float32, AdamW "
        "and gradient clipping, and print each step.",
        "roberta starts with train.sh (torchrun, one rank), and fairseq-train from the command line with "
        "the same arguments and data. The times compared are those at which both print the same line of "
        "fairseq's log.",
        *([nanogpt.note] if nanogpt else []),
    ]
