"""Language models of torchtitan over several nodes: pretraining, fine-tuning, LoRA.

A small Llama:             sbatch --nodes 2 /fsx/training/job.slurm titan --model llama3 --size 1B
Published weights:         MODEL=qwen3 INIT_FROM=Qwen/Qwen3-8B sbatch --nodes 4 /fsx/training/job.slurm titan
torchtitan's own options:  sbatch --nodes 4 /fsx/training/job.slurm titan --size 8B -- --training.max-norm 0.5
Continuing an old run:     RUN_NAME=job-17 sbatch --nodes 2 /fsx/training/job.slurm titan
Weights of a checkpoint:   EXPORT_RUN=job-17 sbatch --nodes 1 /fsx/training/job.slurm titan

train.sh starts this once a rank. Every setting (settings.py) is an environment variable (SEQ_LEN=8192) and
an argument (--seq-len 8192). Folders and the world come from job.slurm, data and weights from prepare.py.

Here are the checks that need no package, so that wrong input is reported at once. Writes
$RUN_DIR/metrics.jsonl (a line a step) and $CHECKPOINT_DIR/step-<n>/, torchtitan's checkpoints; starts from
the newest of those.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from pathlib import Path
from typing import Any

from fields import FILE, Settings
from nodes import fit, needing_less
from settings import read_settings, settings_of_export, split_arguments, usual_learning_rate
from trainkit.memory import enough_memory
from trainkit.resuming import resumed_settings
from trainkit.run.checkpoints import resume_from
from trainkit.run.precision import check_precision
from trainkit.run.run import Run, data_note, die
from trainkit.run.settings import ranks_of_node
from trainkit.run.world import check_world
from trainkit.source import find_source


def nodes_of(run: Run) -> int:
    """Return the number of nodes of this job."""
    return run.world_size // ranks_of_node()


def settle(run: Run) -> tuple[Settings, dict[str, Any]]:
    """Read the settings of a training, choose what is open, and read the note about its data."""
    given, data = read_settings(), data_note(run)
    settings = given.as_run_began(run.run_dir) if resume_from(run) else given
    kept = [name for name, value in vars(settings).items() if value != getattr(given, name)]
    reasons = [f"{name.upper()}={getattr(settings, name)}: the value of the run so far" for name in kept]
    rate = settings.learning_rate or usual_learning_rate(settings)
    settings = dataclasses.replace(settings, learning_rate=rate)
    settings, chosen = fit(settings, count=nodes_of(run), weights=data.get("weights"))
    if run.is_first:
        for each in [*reasons, *chosen]:
            print(each, flush=True)
    counted = zip(settings.parts, data.get("sequences", []), strict=False)
    texts = {part.name: each / part.weight for part, each in counted}
    return resumed_settings(run, settings, sequences=settings.global_batch, texts=texts), data


def start(settings: Settings, run: Run) -> None:
    """Choose this rank's device, replace what CPUs lack, and join the other ranks."""
    device = "cpu" if settings.is_cpu else f"cuda:{run.local_rank}"
    check_precision(settings.mixed_precision, device)

    # torch and torchtitan take seconds, and the checks above none.
    import torch  # noqa: PLC0415

    if not hasattr(torch.distributed, "set_timeout"):  # an image's own
        die(f"titan needs torch 2.14 or newer, here is {torch.__version__}: take another CONTAINER_IMAGE.")
    if settings.is_cpu:
        import cpu  # noqa: PLC0415

        cpu.install()
    else:
        torch.cuda.set_device(run.local_rank)
    from torchtitan.tools.logging import init_logger  # noqa: PLC0415
    from trainkit.run import process_group  # noqa: PLC0415

    init_logger()
    if not run.is_first:
        logging.getLogger().setLevel(logging.WARNING)
    process_group.join(run, "gloo" if settings.is_cpu else "cpu:gloo,cuda:nccl")
    check_world(device)


def main() -> None:
    """Train, or export a checkpoint, as one rank."""
    run = Run.from_environment()
    if source := find_source(read_settings(), run, needs=FILE):
        settings = settings_of_export(source.run_dir, read_settings())
        data = data_note(dataclasses.replace(run, run_dir=source.run_dir))
    else:
        settings, data = settle(run)
    start(settings, run)
    from config import build  # noqa: PLC0415 (after the replacements)
    from exporting import FOLDER, NO_CONFIG, export, hf_config, load_model  # noqa: PLC0415
    from trainer import ClusterTrainer  # noqa: PLC0415
    from trainkit.run import outcome, process_group  # noqa: PLC0415

    config = build(settings, run, data, split_arguments(sys.argv[1:])[1])
    written = hf_config(config.model_spec, data.get("weights"))
    if run.is_first and settings.export == "yes" and not written:
        print(NO_CONFIG, flush=True)
    used = f"BATCH_SIZE={settings.batch_size} and SEQ_LEN={settings.seq_len}"
    nodes, weights = nodes_of(run), data.get("weights")
    with enough_memory(used, lambda: needing_less(settings, count=nodes, weights=weights)):
        trainer = ClusterTrainer(config, run, settings)
        if source:
            load_model(trainer, source.checkpoint)
        else:
            trainer.train()
    is_done = bool(source) or trainer.finish()
    if is_done and settings.export == "yes":
        with process_group.patient(run, "exporting"):
            to, tokenizer = source.to if source else run.run_dir / FOLDER, Path(data["tokenizer"])
            export(trainer, to, settings, tokenizer=tokenizer, config=written)
    if source:
        outcome.finished(run)
    else:
        outcome.ended(run, None if is_done else trainer.step)
    trainer.close()
    process_group.leave()


if __name__ == "__main__":
    main()
