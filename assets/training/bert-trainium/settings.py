"""Settings of a run of bert-trainium, as environment variables or arguments. Needs no package.

As a program it only checks the settings, which prepare.sh does before it installs anything.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Literal

from trainkit.data.documents import OWN
from trainkit.resuming import check_batch
from trainkit.run.run import die
from trainkit.run.settings import (
    MAY_BE_ZERO,
    VALIDATION_SHARES,
    AccumulatingSettings,
    check_number,
    check_variable,
    fill_settings,
)

WIKIPEDIA, MACHINE = "wikipedia", "machine"
CORPORA = (WIKIPEDIA, MACHINE, OWN)
# BERT has 512 positions.
CONTEXTS = range(8, 513)
# BERT's alphabet and special tokens must fit, and an id is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)


@dataclass(frozen=True)
class Settings(AccumulatingSettings):
    """Settings of a run. The defaults are phase 1 of BERT-large as AWS's guide trains it."""

    bert_layers: int = 24
    bert_heads: int = 16
    bert_width: int = 1024
    bert_context: int = 128
    """Tokens of a sequence, both segments and the special tokens included."""
    bert_dropout: float = 0.1
    vocab_size: int = 30522
    batch_size: int = 16
    """Sequences of a rank and micro-step."""
    gradient_accumulation: int = 32
    """Micro-steps of a step. Sequences of a step = ranks * this * batch_size."""
    max_steps: int = 28125
    learning_rate: float = 4e-4
    """Highest learning rate, after the warm-up; it then falls linearly to zero."""
    warmup_steps: int = 2000
    weight_decay: float = 0.01
    seed: int = 12349
    checkpoint_every: int = 500
    eval_every: int = 500
    device: Literal["", "neuron", "cpu", "xla-cpu"] = ""
    """neuron, cpu or xla-cpu; empty for neuron on a Trainium family."""
    precompile: int = 0
    """1: a few steps for the compiler, with nothing saved."""
    precompile_steps: int = 4
    """Steps of a precompilation: the first, a later one and the last cover all graphs."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings of the model."""
        return ("bert_layers", "bert_heads", "bert_width", "bert_context", "vocab_size")


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Read the settings of this run; dies if one is invalid. 0 steps only validate."""
    settings = fill_settings(
        Settings, arguments, about="Pretrains BERT.", may_be_zero=MAY_BE_ZERO | {"max_steps", "precompile"}
    )
    if settings.bert_width % settings.bert_heads:
        die(f"BERT_WIDTH {settings.bert_width} is not a multiple of BERT_HEADS {settings.bert_heads}.")
    if settings.bert_context not in CONTEXTS:
        die(f"BERT_CONTEXT is {settings.bert_context}: give a number from {CONTEXTS[0]} to {CONTEXTS[-1]}.")
    check_variable("CORPUS", CORPORA)
    check_number("VALIDATION_EVERY", VALIDATION_SHARES)
    check_number("VOCAB_SIZE", VOCAB_SIZES, settings.vocab_size)
    return dataclasses.replace(settings, device=_device(settings))


def check_job(settings: Settings, nodes: int) -> None:
    """Die if the nodes cannot divide the global batch; `trainctl submit` calls it before nodes start."""
    check_batch(settings, nodes)


def _device(settings: Settings) -> Literal["neuron", "cpu", "xla-cpu"]:
    kind = os.environ.get("ACCELERATOR_KIND", "none")
    family = os.environ.get("FAMILY") or "this machine"
    device = settings.device or ("neuron" if kind == "neuron" else "")
    if not device and os.environ.get("PREPARE_ONLY") == "1":
        return "cpu"
    if not device:
        die(
            f"bert-trainium runs on Trainium, and {family} has none: take trn1, trn1n or trn2, or train on "
            "CPUs with DEVICE=cpu."
        )
    if device == "neuron" and kind != "neuron":
        die(f"DEVICE is neuron, and {family} has no Trainium: take DEVICE=cpu.")
    if settings.precompile and device != "neuron":
        die(f"PRECOMPILE=1 compiles for Trainium, and DEVICE is {device}: submit it to a Trainium partition.")
    if settings.mixed_precision == "fp16":
        die("MIXED_PRECISION is fp16, which requires a scaled loss: type bf16, which Trainium has, or no.")
    ranks, cores = os.environ.get("NPROC_PER_NODE"), os.environ.get("RANKS_PER_NODE")
    # aws-neuron-sdk, archive/nxd-training/mlp.rst: several instances require all NeuronCores of each.
    if device == "neuron" and int(os.environ.get("NNODES") or 1) > 1 and ranks and cores and ranks != cores:
        die(
            f"NPROC_PER_NODE is {ranks}, and Neuron trains on several nodes only with all {cores} cores of "
            "each: leave NPROC_PER_NODE out, or take --nodes 1."
        )
    world = int(os.environ.get("EXPECTED_WORLD_SIZE") or 1)
    if device == "xla-cpu" and world > 1:
        die(
            f"DEVICE=xla-cpu trains in one process, and this job has {world}: XLA on CPUs would make {world} "
            "worlds of one rank each. Take --nodes 1 with NPROC_PER_NODE=1, or DEVICE=cpu."
        )
    return device


def learning_rate(step: int, settings: Settings) -> float:
    """Return the learning rate of a step from 1 on: it rises linearly, then falls towards zero."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    left = settings.max_steps + 1 - step
    return settings.learning_rate * left / (settings.max_steps + 1 - settings.warmup_steps)


if __name__ == "__main__":
    read_settings([])
