"""Options of torchtitan behind `--` that are refused: a setting decides them, or they cannot work here.

tests/slow/assets/training/titan/options.txt lists all others, which pass.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch

from fields import Settings
from trainkit.run.run import die

RECIPE = (
    *("model", "size", "lora_rank", "float8", "compile", "activation_checkpointing"),
    *("learning_rate", "weight_decay", "warmup_steps"),
)
"""Settings of a recipe, of which a CONFIG has its own."""
DECIDED = {
    "batch_size": ["training.local_batch_size"],
    "global_batch": ["training.global_batch_size"],
    "seq_len": ["training.seq_len"],
    "max_steps": ["training.steps"],
    "mixed_precision": ["training.mixed_precision_param", "checkpoint.export_dtype"],
    "pp": ["parallelism.pipeline_parallel_degree"],
    "tp": ["parallelism.tensor_parallel_degree"],
    "cp": ["parallelism.context_parallel_degree"],
    "ep": ["parallelism.expert_parallel_degree"],
    "shard": ["parallelism.data_parallel_*"],
    "learning_rate": ["optimizer.*.lr"],
    "weight_decay": ["optimizer.*.weight_decay"],
    "warmup_steps": ["lr_scheduler.warmup_steps"],
    "activation_checkpointing": [f"activation_checkpoint:{kind}" for kind in ("none", "selective", "full")],
    "compile": ["compile.enable"],
    "checkpoint_every": ["checkpoint.interval", "checkpoint.enable", "checkpoint.load_only"],
    "keep_checkpoints": ["checkpoint.keep*"],
    "init_from": ["checkpoint.initial_load_*"],
    "export": ["checkpoint.last_save_*"],
    "run_name": ["dump_folder", "checkpoint.folder", "checkpoint.load_step"],
    "hang_timeout_s": ["comm.train_timeout_seconds"],
    "log_every": ["metrics.log_freq"],
    "logger": ["metrics.enable_*"],
    "eval_every": ["validator.freq"],
    "eval_sequences": ["validator.steps", "validator.sequences", "validator.enable"],
    "seed": ["debug.seed", "*dataloader.seed"],
    "tokenizer": ["hf_assets_path"],
    "data": [f"*dataloader.{each}" for each in ("dataset*", "folders", "split", "end_of_text", "sources.*")],
    "profile_steps": ["profiler.*"],
}
"""Patterns of the options that each setting decides, or the name of the run."""
REFUSED = {
    "a run resumes with all that its checkpoint has: for its weights alone, export it (EXPORT_RUN), and give "
    "INIT_FROM.": ["checkpoint.exclude_from_loading"],
    "a seed checkpoint is for weights that do not depend on the ranks: give INIT_FROM.": [
        "checkpoint.create_seed_checkpoint"
    ],
    "the first rank alone writes the curves of a run: leave it out.": ["metrics.save_for_all_ranks"],
    "the ranks meet, and are recorded, as in all workloads, before torchtitan reads it: leave it out.": [
        *("comm.init_timeout_seconds", "comm.mode", "comm.trace_buf_size", "comm.save_traces_*")
    ],
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


def decider_of(name: str, table: dict[str, list[str]]) -> str:
    """Return the key of a table in which an option is, or ""."""
    return next((key for key, patterns in table.items() if any(fnmatch(name, x) for x in patterns)), "")
