"""RoBERTa pretraining over several nodes with fairseq-train itself, started by job.slurm.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm roberta
With other numbers:        MAX_STEPS=5000 sbatch --nodes 4 /fsx/training/job.slurm roberta --seed 2
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm roberta

train.sh starts this program once for each rank. settings.py has the settings; folders and the world size come
from job.slurm: RUN_DIR, DATA_DIR, CHECKPOINT_DIR, EXPECTED_WORLD_SIZE, ACCELERATOR_KIND, MIXED_PRECISION.

Writes $RUN_DIR/metrics.jsonl (a line for each update) and $CHECKPOINT_DIR/step-<n>/; resumes from the newest
of those, and then gives the losses that an uninterrupted run gives.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import torch
from settings import DATA_FOLDER, read_settings
from trainkit.data.indexed import read_indexed
from trainkit.resuming import accumulated
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, data_note, die

LOG_FORMAT = "%(asctime)s | %(name)s | %(message)s"


def main() -> None:
    """Train as one rank."""
    settings, run = read_settings(), Run.from_environment()
    settings = accumulated(run, settings)
    device = torch.device(f"cuda:{run.local_rank}" if settings.device == "cuda" else "cpu")
    check_precision(settings.mixed_precision, device)
    folder = Path(data_note(run)["shards"]) / DATA_FOLDER
    data = read_indexed(folder)
    if data is None:
        die(f"{folder} is incomplete: submit again, and prepare.sh finishes it.")
    # Some of fairseq's modules log while they are imported.
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, datefmt="%H:%M:%S", stream=sys.stdout)
    for module, category in (("fairseq", FutureWarning), ("hydra", UserWarning)):
        warnings.filterwarnings("ignore", category=category, module=module)
    # These imports take seconds, so wrong settings are reported before them.
    from fairseq_run import train  # noqa: PLC0415

    train(settings, run, device=device, data=data)


if __name__ == "__main__":
    main()
