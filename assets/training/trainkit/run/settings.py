"""Settings of a run: a dataclass of the workload, whose fields are environment variables and arguments."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeVar, get_args, get_type_hints

from trainkit.run.run import die

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TrainSettings:
    """Settings that all trainers share; a workload adds its own, and defaults for its model."""

    max_steps: int = 1000
    epochs: float = 0.0
    """Times that the text is read, which decide about MAX_STEPS; 0 for MAX_STEPS as it is."""
    learning_rate: float = 1e-3
    """Highest learning rate, reached after the warm-up."""
    warmup_steps: int = 100
    """Steps of the warm-up; at most a tenth of the run's, unless they are given."""
    weight_decay: float = 0.1
    seed: int = 1337
    checkpoint_every: int = 200
    """Steps between two checkpoints."""
    keep_checkpoints: int = 2
    log_every: int = 10
    """Steps between two printed lines; metrics.jsonl has every step."""
    global_batch: int = 0
    """Sequences of a step over all ranks; 0 for those of the run so far, or what the other settings make."""
    eval_every: int = 200
    """Steps between two validations; 0 for only the validation after the last step."""
    eval_sequences: int = 512
    """Sequences of each validation over all ranks, at most the whole split; 0 for no validation."""
    device: str = ""
    """Kind of device; empty for the kind that the instance family has."""
    mixed_precision: Literal["bf16", "fp16", "no"] = "no"
    """bf16, fp16 or no; job.slurm sets the precision of the instance family."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings that a run keeps: its checkpoints fit a model of the same values alone."""
        return ()

    def validates_after(self, step: int) -> bool:
        """Return True if a validation follows a step; one always follows the last step."""
        return self.eval_every > 0 and step % self.eval_every == 0 and step < self.max_steps

    @property
    def most_checkpoints(self) -> int:
        """Checkpoints that exist at the same time: those kept and one being written, or a short run's."""
        return min(self.keep_checkpoints + 1, math.ceil(self.max_steps / self.checkpoint_every))


@dataclass(frozen=True)
class AccumulatingSettings(TrainSettings):
    """Settings of a trainer that divides a rank's part of a step into micro-steps."""

    batch_size: int = 1
    """Sequences of a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps of a step, unless the global batch decides: GLOBAL_BATCH, or that of the run so far."""


@dataclass(frozen=True)
class LocalSettings:
    """Settings of a trainer that also saves to its nodes' own disks."""

    checkpoint_local_every: int = 0
    """Steps between two checkpoints on the nodes' own disks (trainkit/local_checkpoints.py); 0 for none."""


MAY_BE_ZERO = frozenset(
    {"warmup_steps", "global_batch", "eval_every", "eval_sequences", "seed", "checkpoint_local_every"}
)
"""Shared whole numbers that may be 0; all others begin at 1."""

OF_SOME = {
    "SENTINEL_EVERY": "gpt2 and roberta alone have a sentinel",
    "CHECKPOINT_LOCAL_EVERY": "gpt2 and titan alone save to the nodes' own disks",
}
"""Settings that some workloads have, with the reason to refuse them elsewhere."""

PREPARE_WORKERS = range(1, 1025)
VALIDATION_SHARES = range(2, 10**6)
"""Allowed values of PREPARE_WORKERS, and of VALIDATION_EVERY in the workloads whose preparation reads it."""


class _Parser(argparse.ArgumentParser):
    """Parser that reports an error in one sentence."""

    def error(self, message: str) -> NoReturn:
        die(f"{message}.")


def fill_settings(
    kind: type[Settings],
    arguments: Sequence[str] | None = None,
    *,
    about: str,
    may_be_zero: Collection[str] = MAY_BE_ZERO,
) -> Settings:
    """Fill a dataclass: arguments win over the environment, the environment over the defaults.

    A field `max_steps` is the variable MAX_STEPS and the argument --max-steps; its default has its type:
    int, float or str. Dies on a value of another type, whole numbers below 1, others below 0, nan and inf,
    words that a field's Literal does not list, and numbers of the preparation that are not allowed.

    Args:
        arguments: arguments to parse; by default the command line's.
        about: first line of --help.
        may_be_zero: fields that are whole numbers and may be 0.
    """
    if os.environ.get("EVAL_BATCHES") == "0":  # of an older version: no validation
        os.environ.setdefault("EVAL_SEQUENCES", "0")
    parser = _Parser(description=about, allow_abbrev=False)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        default = os.environ.get(field.name.upper()) or str(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=default)
    settings = kind(**vars(parser.parse_args(arguments)))
    for name, value in vars(settings).items():
        least = 0 if name in may_be_zero or isinstance(value, float) else 1
        if not isinstance(value, str) and not least <= value < math.inf:
            die(f"{name.upper()} is {value}: give {least} or more.")
    for name, hint in get_type_hints(kind).items():
        if (words := get_args(hint)) and (value := getattr(settings, name)) not in words:
            die(f'{name.upper()} is "{value}"; allowed: {", ".join(filter(None, words))}.')
    check_number("PREPARE_WORKERS", PREPARE_WORKERS)
    for name, only in OF_SOME.items():
        if not hasattr(settings, name.lower()) and os.environ.get(name, "0") not in {"", "0"}:
            die(f"{name} has no effect here, since {only}: leave it out.")
    # A job that runs while a newer version is deployed continues.
    if os.environ.get("EVAL_BATCHES", "0") != "0" and os.environ.get("START_STEP", "0") == "0":
        die("EVAL_BATCHES is replaced by EVAL_SEQUENCES, the sequences of a validation over all ranks.")
    return settings


def is_given(name: str) -> bool:
    """Return True if the user has set a setting, by its variable or by its argument."""
    option = f"--{name.replace('_', '-')}"
    return bool(os.environ.get(name.upper())) or any(w.partition("=")[0] == option for w in sys.argv)


def check_variable(name: str, allowed: Sequence[str]) -> None:
    """Die if a variable that the preparation reads is none of the allowed words, and not empty."""
    if (value := os.environ.get(name)) and value not in allowed:
        die(f'{name} is "{value}"; allowed: {", ".join(allowed)}.')


def check_number(name: str, allowed: range, value: object = None) -> None:
    """Die if a setting is no whole number of a range; without `value`, a variable, which may be empty."""
    text = str(value if value is not None else os.environ.get(name) or allowed.start)
    if not (text.isdecimal() and int(text) in allowed):
        die(f"{name} is {text!r}: give a whole number from {allowed.start} to {allowed.stop - 1}.")


def ranks_of_node() -> int:
    """Return the ranks of each node: the job's, else the instance family's."""
    return int(os.environ.get("NPROC_PER_NODE") or os.environ.get("RANKS_PER_NODE") or 1)


def family_device() -> Literal["cpu", "cuda"]:
    """Return cuda if the instance family has GPUs, else cpu."""
    return "cuda" if os.environ.get("ACCELERATOR_KIND") == "gpu" else "cpu"
