"""RoBERTa pretraining over several nodes: fairseq-train itself, started in the way of this cluster.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm roberta
With other numbers:        MAX_STEPS=5000 sbatch --nodes 4 /fsx/training/job.slurm roberta --seed 2
Going on with an old run:  RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm roberta

train.sh starts this once a rank. roberta_settings.py has the settings; folders and the world come from
job.slurm: RUN_DIR, DATA_DIR, CHECKPOINT_DIR, EXPECTED_WORLD_SIZE, ACCELERATOR_KIND, MIXED_PRECISION.
VERIFY_DATA=no leaves the data's sums unread.

Writes $RUN_DIR/metrics.jsonl (a line an update) and $CHECKPOINT_DIR/step-<n>/; starts from the newest,
and then gives the losses that an uninterrupted run gives.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path

import torch
from binary_data import DataError, Manifest, check_data
from roberta_settings import (
    CHECKPOINT_BYTES,
    Settings,
    SettingsError,
    choose_corpus,
    data_folder,
    parameters,
    read_settings,
)
from trainkit.run import checkpoints
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, die

LOG_FORMAT = "%(asctime)s | %(name)s | %(message)s"


def check_device(settings: Settings, run: Run) -> torch.device:
    """Where this rank computes; dies if there is no such thing, or it does not compute in that precision."""
    device = torch.device(f"cuda:{run.local_rank}" if settings.device == "cuda" else "cpu")
    check_precision(settings.mixed_precision, device)
    return device


def open_data(settings: Settings, run: Run) -> tuple[Path, Manifest]:
    """The data's folder and what it holds; the first rank of a node reads all of it for its sums."""
    corpus = choose_corpus(settings.corpus, data=run.data_dir)
    folder = data_folder(run.data_dir, corpus=corpus, vocab_size=settings.vocab_size)
    sums = run.local_rank == 0 and os.environ.get("VERIFY_DATA") != "no"
    return folder, check_data(folder, sums=sums)


def check_space(settings: Settings, run: Run, *, symbols: int) -> None:
    """Dies unless there is room for the checkpoints that are kept, and for one that is being written."""
    size = parameters(settings, symbols) * CHECKPOINT_BYTES
    checkpoints.check_space(run.checkpoint_dir, (settings.keep_checkpoints + 1) * size)


def main() -> None:
    """One rank's whole life."""
    run = Run.from_environment()
    try:
        settings = read_settings(sys.argv[1:], os.environ)
        device = check_device(settings, run)
        folder, manifest = open_data(settings, run)
    except (SettingsError, DataError) as error:
        die(str(error))
    check_space(settings, run, symbols=manifest.symbols)
    # Before any of fairseq's modules is imported: some log while they are.
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, datefmt="%H:%M:%S", stream=sys.stdout)
    for module, category in (("fairseq", FutureWarning), ("hydra", UserWarning)):
        warnings.filterwarnings("ignore", category=category, module=module)
    # Seconds of imports, which a wrong setting need not wait for.
    from fairseq_run import train  # noqa: PLC0415

    train(settings, run, device=device, data=folder, manifest=manifest)


if __name__ == "__main__":
    main()
