"""GPT-2 345M over several nodes with Megatron's core: data, tensor and pipeline parallel.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm gpt2-megatron
Each layer on two GPUs:    TENSOR_PARALLEL=2 sbatch --nodes 2 /fsx/training/job.slurm gpt2-megatron
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm gpt2-megatron
For transformers:          EXPORT_RUN=job-17 sbatch --nodes 1 /fsx/training/job.slurm gpt2-megatron

train.sh starts this once per rank. Every setting (settings.py) is an environment variable (MAX_STEPS=100) and
an argument (--max-steps 100). Folders and the world come from job.slurm, data from prepare.py.

The checks here need no package, so wrong input is reported at once. loop.py trains. Writes
$RUN_DIR/metrics.jsonl (a line for each step) and $CHECKPOINT_DIR/step-<n>/; resumes from the newest of those,
with the losses of an uninterrupted run.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

from settings import DATA_FOLDER, Settings, read_settings, sizes_of_job, weights_file
from trainkit.data.indexed import Indexed, read_indexed
from trainkit.memory import enough_memory
from trainkit.resuming import resumed_settings
from trainkit.run import outcome
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, data_note, die
from trainkit.source import Source, find_source


def open_data(run: Run, settings: Settings) -> Indexed:
    """Return the data that prepare.py recorded for this run; die unless it is complete and fits the model."""
    folder = Path(data_note(run)["shards"])
    data = read_indexed(folder / DATA_FOLDER)
    if data is None:
        die(f"{folder} is incomplete: submit again, and prepare.sh finishes it.")
    vocab_size = data.noted["vocab_size"]
    if vocab_size > settings.vocab_size:
        die(
            f"{folder} has a vocabulary of {vocab_size} tokens and the model one of "
            f"{settings.vocab_size}: give prepare.sh and train.sh the same VOCAB_SIZE."
        )
    return data


def export(source: Source, run: Run) -> None:
    """Export a checkpoint on the first rank alone, since this only moves tensors."""
    from exporting import export as write  # noqa: PLC0415 (torch takes seconds, and the checks above none)

    data = data_note(dataclasses.replace(run, run_dir=source.run_dir))
    write(source.checkpoint, source.to, shards=Path(data["shards"]))
    outcome.finished(run)


def main() -> None:
    """Train as one rank, or export a checkpoint."""
    settings, run = read_settings(), Run.from_environment()
    if source := find_source(settings, run, needs="data.json"):
        if run.is_first:
            export(source, run)
        return
    data = open_data(run, settings)
    # A sample has its last token in common with the next one.
    texts = {data.folder.parent.name: (data.tokens["train"] - 1) // settings.gpt2_context}
    settings = resumed_settings(run, settings, sequences=settings.global_batch_size, texts=texts)
    sizes = sizes_of_job(settings, run)
    weights = weights_file(settings, run)
    fused = settings.transformer_impl == "transformer_engine"
    if fused and not importlib.util.find_spec("transformer_engine"):
        die(
            "this environment has no Transformer Engine, which is compiled into the nodes' image: deploy "
            "with -c image=build, or train slowly without its kernels (TRANSFORMER_IMPL=local)."
        )
    device = f"cuda:{run.local_rank}" if settings.device == "cuda" else "cpu"
    check_precision(settings.mixed_precision, device)
    from loop import train  # noqa: PLC0415 (torch takes seconds, and the checks above none)

    micro = settings.micro_batch_size
    smaller = f"MICRO_BATCH_SIZE={micro // 2}, which makes the same step, or " if micro % 2 == 0 else ""
    used = f"MICRO_BATCH_SIZE={micro} and GPT2_CONTEXT={settings.gpt2_context}"
    with enough_memory(used, lambda: f"{smaller}a larger TENSOR_PARALLEL or PIPELINE_PARALLEL"):
        train(run, settings, sizes, data, weights)


if __name__ == "__main__":
    main()
