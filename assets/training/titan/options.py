"""Options of torchtitan behind `--` that are refused: a setting decides them, or they cannot work here.

tests/slow/assets/training/titan/options.txt lists all others, which pass.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainkit.run.run import die

if TYPE_CHECKING:
    from settings import Settings

RECIPE = (
    *("model", "size", "lora_rank", "float8", "compile", "activation_checkpointing"),
    *("learning_rate", "weight_decay", "warmup_steps"),
)
"""Settings of a recipe, of which a CONFIG has its own."""
DECIDED = {
    "batch_size": ("training.local_batch_size",),
    "global_batch": ("training.global_batch_size",),
    "seq_len": ("training.seq_len",),
    "max_steps": ("training.steps",),
    "mixed_precision": ("training.mixed_precision_param", "checkpoint.export_dtype"),
    "tp": ("parallelism.tensor_parallel_degree",),
    "cp": ("parallelism.context_parallel_degree",),
    "ep": ("parallelism.expert_parallel_degree",),
    "shard": ("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree"),
    "learning_rate": ("optimizer.param_groups.0.optimizer_kwargs.lr",),
    "weight_decay": ("optimizer.param_groups.0.optimizer_kwargs.weight_decay",),
    "warmup_steps": ("lr_scheduler.warmup_steps",),
    "activation_checkpointing": tuple(
        f"activation_checkpoint:{kind}" for kind in ("none", "selective", "full")
    ),
    "compile": ("compile.enable",),
    "checkpoint_every": ("checkpoint.interval", "checkpoint.enable", "checkpoint.load_only"),
    "keep_checkpoints": ("checkpoint.keep", "checkpoint.keep_latest_k"),
    "init_from": tuple(
        f"checkpoint.initial_load_{each}" for each in ("path", "model_only", "in_hf", "in_hf_quantized")
    ),
    "export": ("checkpoint.last_save_model_only", "checkpoint.last_save_in_hf"),
    "run_name": ("dump_folder", "checkpoint.folder", "checkpoint.load_step"),
    "hang_timeout_s": ("comm.train_timeout_seconds",),
    "log_every": ("metrics.log_freq",),
    "logger": ("metrics.enable_wandb", "metrics.enable_tensorboard"),
    "eval_every": ("validator.freq",),
    "eval_batches": ("validator.steps", "validator.enable"),
    "seed": ("debug.seed", "dataloader.seed", "validator.dataloader.seed"),
    "tokenizer": ("hf_assets_path",),
    "data": tuple(
        f"{loader}.{each}"
        for loader in ("dataloader", "validator.dataloader")
        for each in ("dataset", "dataset_path", "folders", "split", "end_of_text", "sources")
    ),
    "profile_steps": ("profiler",),
}
"""Options, or beginnings of options, that each setting decides, or the name of the run."""
# Pull request 188500 of pytorch: a step of micro-batches.
NO_PIPELINE = (
    "torchtitan 0.3.0 calls pipeline parallelism with an interface that torch 2.13 lacks: give more TP, or "
    "more nodes with SHARD=all."
)
REFUSED = {
    NO_PIPELINE: ("parallelism.pipeline_parallel_degree",),
    "torch 2.13 lacks what torchtitan's other backends need: leave it out.": ("parallelism.spmd_backend",),
    "a run resumes with all that its checkpoint has: for its weights alone, export it (EXPORT_RUN), and give "
    "INIT_FROM.": ("checkpoint.exclude_from_loading",),
    "a seed checkpoint is for weights that do not depend on the ranks: give INIT_FROM.": (
        "checkpoint.create_seed_checkpoint",
    ),
    "the first rank alone writes the curves of a run: leave it out.": ("metrics.save_for_all_ranks",),
    "the ranks meet, and are recorded, as in all workloads, before torchtitan reads it: leave it out.": tuple(
        f"comm.{each}"
        for each in (
            *("init_timeout_seconds", "mode", "trace_buf_size"),
            *("save_traces_folder", "save_traces_file_prefix"),
        )
    ),
}
"""Options that change nothing, or contradict what a run is, by the reason."""


def check_options(settings: Settings, options: list[str]) -> None:
    """Die of an option that a setting decides: the rest of the run would not know its value."""
    free = (*(RECIPE if settings.config else ()), *(() if settings.profile_steps else ("profile_steps",)))
    for option in options:
        name = re.sub(r"=.*|^--", "", option).replace("-", "_").replace(".no_", ".")
        if reason := decider_of(name, REFUSED):
            die(f"{option}: {reason}")
        if (setting := decider_of(name, DECIDED)) and setting not in free:
            die(f"{setting.upper()} decides what {option} would: give {setting.upper()} in its place.")


def decider_of(name: str, table: dict[str, tuple[str, ...]]) -> str:
    """Return the key of a table in which an option is, or ""."""
    option = f"{name}."
    return next((key for key, names in table.items() if option.startswith(tuple(f"{x}." for x in names))), "")
