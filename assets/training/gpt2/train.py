"""GPT-2 over several nodes, fine-tuned or from scratch, with transformers and accelerate.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm gpt2
With other numbers:        MAX_STEPS=5000 sbatch --nodes 4 /fsx/training/job.slurm gpt2 --seed 1
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm gpt2
Through Intel's mpirun:    LAUNCHER=mpirun sbatch --nodes 2 /fsx/training/job.slurm gpt2

train.sh starts this once per rank. Every setting (settings.py) is an environment variable (GPT2_LAYERS=6)
and an argument (--gpt2-layers 6). Folders and the world come from job.slurm, data and weights from
prepare.py.

The checks here need no package, so wrong input is reported at once. loop.py trains. Writes
$RUN_DIR/metrics.jsonl (a line for each step) and $CHECKPOINT_DIR/step-<n>/; resumes from the newest of those,
with the losses of an uninterrupted run.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from settings import Prepared, Shape, highest_learning_rate, read_prepared, read_settings, shape_of
from trainkit.data.shards import Manifest, ShardError, read_manifest, sha256_of
from trainkit.memory import enough_memory, smaller_micro_steps
from trainkit.resuming import accumulated
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, die

CPUS = Path("/sys/devices/system/cpu")


def open_data(prepared: Prepared, shape: Shape) -> Manifest:
    """Return the manifest of the shards; dies unless they fit the model."""
    folder = prepared.shards
    try:
        manifest = read_manifest(folder)
    except ShardError as error:
        die(str(error))
    if manifest.vocab_size > shape.vocab_size:
        die(
            f"{folder} has a vocabulary of {manifest.vocab_size} tokens and the model one of "
            f"{shape.vocab_size}: give prepare.sh and train.sh the same VOCAB_SIZE, or other weights "
            "(INIT_FROM)."
        )
    if prepared.weights and sha256_of(prepared.weights / "tokenizer.json") != manifest.tokenizer_sha256:
        die(
            f"{folder} was made with a tokenizer other than {prepared.weights} has: submit again, and "
            "prepare.sh makes it again."
        )
    return manifest


def pin(local_rank: int, ranks: int, *, of: int | None = None) -> set[int]:
    """Bind this process to its share of the node's cores, if possible on one socket, and return them.

    Call it before the first thread starts: threads inherit the setting. A share that mpirun or srun has
    already set remains; `of` is the number of the node's CPUs.
    """
    allowed = os.sched_getaffinity(0)
    if ranks > 1 and len(allowed) * ranks > (of or os.cpu_count() or 1) and len(allowed) >= ranks:
        os.sched_setaffinity(0, share(local_rank, ranks, sorted(allowed, key=place)))
    return os.sched_getaffinity(0)


def share(local_rank: int, ranks: int, ordered: list[int]) -> set[int]:
    """Return this rank's part of the CPUs; the parts' sizes differ by at most one."""
    begin, end = (len(ordered) * rank // ranks for rank in (local_rank, local_rank + 1))
    return set(ordered[begin:end])


def place(cpu: int, cpus: Path = CPUS) -> tuple[int, int, int]:
    """Return socket, core and number of a hardware thread: a key that sorts by socket, siblings together."""
    topology = cpus / f"cpu{cpu}" / "topology"
    found = [
        int(file.read_text()) if (file := topology / name).is_file() else 0
        for name in ("physical_package_id", "core_id")
    ]
    return found[0], found[1], cpu


def main() -> None:
    """Train as one rank."""
    settings, run = read_settings(), Run.from_environment()
    prepared = read_prepared(run)
    rate = highest_learning_rate(settings, prepared.weights)
    settings = dataclasses.replace(settings, learning_rate=rate)
    shape = shape_of(settings, prepared.weights)
    manifest = open_data(prepared, shape)
    texts = {prepared.shards.name: manifest.tokens("train") // shape.context}
    settings = accumulated(run, settings, texts=texts)
    check_precision(
        settings.mixed_precision, f"cuda:{run.local_rank}" if settings.device == "cuda" else "cpu"
    )
    if settings.device == "cpu":
        pin(run.local_rank, int(os.environ.get("NPROC_PER_NODE", "1")))
    from loop import train  # noqa: PLC0415 (torch takes seconds, and the checks above none)

    used = f"BATCH_SIZE={settings.batch_size} and GPT2_CONTEXT={shape.context}"
    otherwise = "a shorter GPT2_CONTEXT, a smaller model, or GPUs with more memory"
    with enough_memory(used, lambda: smaller_micro_steps(settings, otherwise)):
        train(run, settings, shape, prepared, manifest)


if __name__ == "__main__":
    main()
