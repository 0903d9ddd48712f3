"""Language models of torchtitan over several nodes: pretraining, fine-tuning, LoRA.

A small Llama:             sbatch --nodes 2 /fsx/training/job.slurm titan --model llama3 --size 1B
Published weights:         MODEL=qwen3 INIT_FROM=Qwen/Qwen3-8B sbatch --nodes 4 /fsx/training/job.slurm titan
torchtitan's own options:  sbatch --nodes 4 /fsx/training/job.slurm titan --size 8B -- --training.max-norm 0.5
Going on with an old run:  RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm titan

train.sh starts this once a rank. Every setting (settings.py) is an environment variable (SEQ_LEN=8192) and
an argument (--seq-len 8192). Folders and the world come from job.slurm, data and weights from prepare.py.

Here are the checks that need no package, so that wrong input is reported at once. Writes
$RUN_DIR/metrics.jsonl (a line a step) and $CHECKPOINT_DIR/step-<n>/, torchtitan's checkpoints; starts from
the newest of those.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from settings import BATCH_SIZE_FILE, check_float8, check_world, fit, read_settings, split_arguments
from trainkit.data.shards import SPLITS, ShardError, read_manifest
from trainkit.run.files import write_whole
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, data_note, die
from trainkit.run.world import check_world as check_all_ranks


def check_data(folder: Path, *, seq_len: int) -> None:
    """Die unless each split of the shards has a sequence."""
    try:
        manifest = read_manifest(folder)
    except ShardError as error:
        die(str(error))
    for split in SPLITS:
        if manifest.tokens(split) <= seq_len:
            die(
                f"{folder} has {manifest.tokens(split)} tokens in {split}, fewer than SEQ_LEN "
                f"({seq_len}) takes: take more text, or lower it (for val also VALIDATION_EVERY)."
            )


def main() -> None:
    """Train as one rank."""
    settings, run = read_settings(), Run.from_environment()
    _, options = split_arguments(sys.argv[1:])
    ranks_a_node = int(os.environ.get("NPROC_PER_NODE", "1"))
    check_world(settings, run.world_size, ranks_a_node)
    data = data_note(run)
    settings, reasons = fit(
        settings.with_batch_of_run(run.run_dir),
        nodes=run.world_size // ranks_a_node,
        ranks_a_node=ranks_a_node,
        weights=data.get("weights"),
    )
    if run.is_first:
        for each in reasons:
            print(each, flush=True)
        write_whole(run.run_dir / BATCH_SIZE_FILE, f"{settings.batch_size}\n")
    if ("chats" in data) != (settings.task == "sft"):
        die(
            "TASK differs between prepare.sh and the ranks: give it as a variable (TASK=sft), not as an "
            "argument."
        )
    if settings.task == "pretrain":
        check_data(Path(data["shards"]), seq_len=settings.seq_len)
    device = "cpu" if settings.is_cpu else f"cuda:{run.local_rank}"
    check_precision(settings.mixed_precision, device)

    # torch and torchtitan take seconds, and the checks above none.
    import torch  # noqa: PLC0415

    if settings.is_cpu:
        import cpu  # noqa: PLC0415

        cpu.install()
    else:
        torch.cuda.set_device(run.local_rank)
        check_float8(settings, "{}.{}".format(*torch.cuda.get_device_capability()))
    from config import build  # noqa: PLC0415
    from exporting import export  # noqa: PLC0415
    from torchtitan.tools.logging import init_logger  # noqa: PLC0415
    from trainer import ClusterTrainer  # noqa: PLC0415
    from trainkit.run import process_group  # noqa: PLC0415

    init_logger()
    if not run.is_first:
        logging.getLogger().setLevel(logging.WARNING)
    config = build(settings, run, data, options)
    process_group.join(run, "gloo" if settings.is_cpu else "cpu:gloo,cuda:nccl")
    check_all_ranks("cpu" if settings.is_cpu else device)
    trainer = ClusterTrainer(config, run)
    trainer.train()
    is_done = trainer.finish()
    if is_done and settings.export == "yes":
        dtype = torch.bfloat16 if settings.mixed_precision == "bf16" else torch.float32
        weights = Path(data["weights"]) if data.get("weights") else None
        with process_group.patient(run, "exporting"):
            export(trainer, run, weights=weights, tokenizer=Path(data["tokenizer"]), dtype=dtype)
    trainer.close()
    if is_done:
        trainer.end()
    process_group.leave()


if __name__ == "__main__":
    main()
