"""BERT-large's pretraining, phase 1, over several Trainium nodes: masked words and next sentences.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm bert-trainium
Its graphs beforehand:     PRECOMPILE=1 sbatch --nodes 2 /fsx/training/job.slurm bert-trainium
With other numbers:        MAX_STEPS=500 sbatch --nodes 2 /fsx/training/job.slurm bert-trainium --seed 1
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm bert-trainium

train.sh starts this once per rank. Every setting (settings.py) is an environment variable (BERT_LAYERS=6)
and an argument (--bert-layers 6). Folders and the world come from job.slurm, data from prepare.py.

The checks here need no package, so wrong input is reported at once. loop.py trains. Writes
$RUN_DIR/metrics.jsonl (a line for each step) and $CHECKPOINT_DIR/step-<n>/; resumes from the newest of those,
with the losses of an uninterrupted run.
"""

from __future__ import annotations

from pathlib import Path

from pairs import ROW_HEAD
from settings import Settings, read_settings
from trainkit.data.shards import SPLITS, Manifest, ShardError, read_manifest
from trainkit.resuming import accumulated
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, data_note, die


def open_data(folder: Path, settings: Settings) -> Manifest:
    """Return the manifest of the shards; dies unless they fit the model."""
    try:
        manifest = read_manifest(folder)
    except ShardError as error:
        die(str(error))
    if manifest.source.get("context") != settings.bert_context:
        die(
            f"{folder} has sequences of {manifest.source.get('context')} tokens and BERT_CONTEXT is "
            f"{settings.bert_context}: give prepare.sh and train.sh the same."
        )
    if manifest.vocab_size > settings.vocab_size:
        die(
            f"{folder} has a vocabulary of {manifest.vocab_size} tokens and the model one of "
            f"{settings.vocab_size}: give prepare.sh and train.sh the same VOCAB_SIZE."
        )
    for split in SPLITS:
        if manifest.tokens(split) < settings.bert_context + ROW_HEAD:
            die(f"{folder} has no pair of sentences in {split}: take more text.")
    return manifest


def main() -> None:
    """Train as one rank."""
    settings, run = read_settings(), Run.from_environment()
    shards = Path(data_note(run)["shards"])
    manifest = open_data(shards, settings)
    rows = manifest.tokens("train") // (settings.bert_context + ROW_HEAD)
    settings = accumulated(run, settings, texts={shards.name: rows})
    check_precision(settings.mixed_precision, "cpu" if settings.device != "neuron" else "neuron")
    from loop import train  # noqa: PLC0415 (torch takes seconds, and the checks above none)

    train(run, settings, shards, manifest)


if __name__ == "__main__":
    main()
