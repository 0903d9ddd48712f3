"""Settings of a run of titan: environment variables that are arguments as well. Needs no package."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
from pathlib import Path

from fields import Settings, settings_of
from nodes import check_float8, check_size, fit, known_model, saves_of
from options import RECIPE, check_options
from texts import check_texts
from trainkit.data.hf_weights import WeightsError, check_name
from trainkit.resuming import check_range
from trainkit.run.checkpoints import newest
from trainkit.run.run import die
from trainkit.run.settings import (
    MAY_BE_ZERO,
    VALIDATION_SHARES,
    check_number,
    family_device,
    fill_settings,
)
from trainkit.sizes import Choice
from trainkit.source import check_export

VOCAB_SIZES = range(300, 262_145)
"""Sizes of a tokenizer that is trained here: the 256 bytes and the end of text have to fit."""

LEARNING_RATE_SCRATCH = 3e-4
"""That of Llama 3 8B (arXiv 2407.21783, table 3), and of torchtitan's recipe for it."""
LEARNING_RATE_TUNING = 2e-5
"""That of torchtitan's own recipe for fine-tuning (models/qwen3/config_registry.py, sft_qwen3_8b_math)."""
LEARNING_RATE_LORA = 2e-4
"""That of QLoRA for models of 7 and 13 billion parameters (arXiv 2305.14314, appendix B)."""

ZEROS = MAY_BE_ZERO | {"lora_rank", "global_batch", "export_step", "pp", "tp", "cp", "ep", "batch_size"}


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line at `--` into our arguments and torchtitan's."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Read the settings; dies on what makes no sense.

    Args:
        arguments: by default those of the command line; torchtitan's, behind `--`, are left out.
    """
    ours, options = split_arguments(sys.argv[1:] if arguments is None else arguments)
    settings = fill_settings(
        Settings, ours, about="Trains a model of torchtitan.", may_be_zero=frozenset(ZEROS)
    )
    settings = dataclasses.replace(settings, device=settings.device or family_device())
    check_export(settings)
    check_model(settings)
    check_options(settings, options)
    check_texts(settings.data, settings.task, has_tokenizer=bool(settings.tokenizer or settings.init_from))
    check_weights(settings)
    check_window(settings)
    check_float8(settings)
    compiles = settings.compile or ("no" if settings.is_cpu else "yes")
    return dataclasses.replace(settings, compile=compiles)


def usual_learning_rate(settings: Settings) -> float:
    """Return the default learning rate of a task, 0 for that of a recipe.

    A model that is trained further forgets at higher ones.
    """
    if settings.config:
        return 0.0
    if settings.lora_rank:
        return LEARNING_RATE_LORA
    return LEARNING_RATE_TUNING if settings.init_from else LEARNING_RATE_SCRATCH


def settings_of_export(run_dir: Path, own: Settings) -> Settings:
    """Return the settings of a run for an export: on this job's device, sharded over all its ranks."""
    plain = {"compile": "no", "float8": "no", "logger": "", "profile_steps": "", "export": "yes"}
    sharded = {**vars(Choice()), "global_batch": 0, "eval_sequences": 0, "checkpoint_local_every": 0}
    own_values = {"device": own.device, "export_run": own.export_run}
    return dataclasses.replace(settings_of(run_dir), **own_values, **plain, **sharded)  # type: ignore[arg-type]


def check_window(settings: Settings) -> None:
    """Die unless PROFILE_STEPS is a range of the run's steps, or empty."""
    found = re.fullmatch(r"(\d{1,9})-(\d{1,9})", settings.profile_steps)
    last = math.inf if settings.epochs else settings.max_steps
    if settings.profile_steps and not (found and 1 <= int(found[1]) <= int(found[2]) <= last):
        die(
            f"PROFILE_STEPS is {settings.profile_steps} of {settings.max_steps} steps (MAX_STEPS): give "
            "FIRST-LAST within them, such as 10-12."
        )


def check_model(settings: Settings) -> None:
    """Die unless model and size are torchtitan's, or a function is given instead."""
    if not settings.config:
        check_size(settings.model, settings.size)
        return
    if not re.fullmatch(r"[\w.]+:\w+", settings.config):
        die(
            f'CONFIG is "{settings.config}": give PACKAGE:FUNCTION, such as '
            "torchtitan.models.qwen3.config_registry:qwen3_14b."
        )
    given = [name.upper() for name in RECIPE if getattr(settings, name) != getattr(Settings, name)]
    if given:
        die(
            f"CONFIG={settings.config} is a recipe of its own, in which {', '.join(given)} would change "
            "nothing: give either, or torchtitan's options behind --."
        )


def check_weights(settings: Settings) -> None:
    """Die unless INIT_FROM names weights where a setting needs them, and VOCAB_SIZE is possible."""
    try:
        check_name(settings.init_from)
    except WeightsError as error:
        die(str(error))
    check_number("VOCAB_SIZE", VOCAB_SIZES, settings.vocab_size)
    check_number("VALIDATION_EVERY", VALIDATION_SHARES)
    if not settings.init_from and (settings.task == "sft" or settings.lora_rank):
        given = "TASK=sft" if settings.task == "sft" else f"LORA_RANK={settings.lora_rank}"
        die(f"{given} needs weights: give INIT_FROM, a name on the Hugging Face hub or a folder.")


def check_job(settings: Settings, nodes: int) -> dict[str, float] | None:
    """Die if the job cannot run on nodes of this kind; `trainctl submit` calls it before nodes start.

    Args:
        settings: settings of the job, from read_settings.
        nodes: number of nodes of the job. The rest about them is in the environment.

    Returns:
        The checkpoints of the run (nodes.saves_of); None if it saves none, or their size is unknown.
    """
    if not settings.trains:
        return None
    run_dir, checkpoint_dir = (os.environ.get(name) for name in ("RUN_DIR", "CHECKPOINT_DIR"))
    if run_dir and checkpoint_dir and newest(Path(checkpoint_dir)):  # in a job
        settings = settings.as_run_began(Path(run_dir))
    check_range(settings.global_batch)
    settings, _ = fit(settings, count=nodes)
    return saves_of(settings, count=nodes)


def expect_job(settings: Settings, nodes: int) -> dict[str, object]:
    """Return what `trainctl price` needs to know of a job; dies if the job cannot run on these nodes.

    Args:
        settings: settings of the job, from read_settings.
        nodes: number of nodes of the job. The rest about them is in the environment.

    Returns:
        `model`, its name; `reasons`, a sentence for each setting that was chosen; `tokens` of the whole run;
        `flops_per_token`, floating point operations of a token, forward and backward; `saves`, as
        nodes.saves_of returns them.
    """
    model = known_model(settings)
    if not model:
        die("the speed is estimated from the model's size: give MODEL and SIZE.")
    if settings.is_cpu:
        die("the speed is estimated for GPUs: give a family that has them.")
    if settings.epochs:
        die("EPOCHS is of a text, which is counted on the cluster alone: give MAX_STEPS.")
    settings, reasons = fit(settings, count=nodes)
    if settings.init_from:
        reasons.append(f"INIT_FROM={settings.init_from}: not looked at here; trainctl submit does")
    return {
        "model": f"{settings.model} of {model.parameters / 1e9:.2g} billion parameters",
        "reasons": reasons,
        "tokens": settings.max_steps * settings.global_batch * settings.seq_len,
        "flops_per_token": model.flops(settings.seq_len, lora=bool(settings.lora_rank)),
        "saves": saves_of(settings, count=nodes),
    }
