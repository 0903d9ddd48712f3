"""A Llama over several nodes: FSDP2, bf16, recomputed activations, checkpoints in the background.

Two nodes:                 sbatch --nodes 2 /fsx/training/job.slurm llama-fsdp2
8 billion parameters:      LLAMA_SIZE=8b sbatch --nodes 4 /fsx/training/job.slurm llama-fsdp2
Compiled, shards a node:   COMPILE=yes SHARD=node sbatch --nodes 4 /fsx/training/job.slurm llama-fsdp2
Going on with an old run:  RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm llama-fsdp2

train.sh starts this once a rank. Every setting (settings.py) is an environment variable (LLAMA_LAYERS=6) and
an argument (--llama-layers 6). Folders and the world come from job.slurm, data from prepare.py.

Here are the checks that need no package, so that wrong input is told at once; loop.py trains. Writes
$RUN_DIR/metrics.jsonl (a line a step), $RUN_DIR/checkpoints.jsonl (a line a checkpoint) and
$CHECKPOINT_DIR/step-<n>/; starts from the newest of those, and then gives the losses that an uninterrupted
run of as many ranks gives.
"""

from __future__ import annotations

from data import open_data, verify
from progress import find_checkpoint
from settings import Settings, read_settings, refuse_fp16, shape_of
from sizes import Shape
from trainkit.run import checkpoints
from trainkit.run.precision import check_precision
from trainkit.run.run import Run
from trainkit.run.stopping import warn_of_short_notice

# fp32 weights and AdamW's two moments.
CHECKPOINT_BYTES_A_PARAMETER = 12


def check_space(run: Run, settings: Settings, shape: Shape) -> None:
    """Die unless the checkpoints that will be kept, and one more, have room."""
    if run.is_first:
        count, size = max(1, settings.keep_checkpoints) + 1, shape.parameters * CHECKPOINT_BYTES_A_PARAMETER
        checkpoints.check_space(run.checkpoint_dir, size * count)
        warn_of_short_notice(run, checkpoint_bytes=size, every=settings.checkpoint_every)


def main() -> None:
    """Check settings, data and free space on one rank, then train."""
    settings, run = read_settings(), Run.from_environment()
    refuse_fp16(settings)
    shape = shape_of(settings)
    data = open_data(run, settings, shape)
    checkpoint = find_checkpoint(run, shape, data)
    check_space(run, settings, shape)
    check_precision(
        settings.mixed_precision, f"cuda:{run.local_rank}" if settings.device == "cuda" else "cpu"
    )
    verify(run, settings, data)
    from loop import train  # noqa: PLC0415 (torch takes seconds, and the checks above none)

    train(run, settings, shape, data, checkpoint)


if __name__ == "__main__":
    main()
