"""Settings of a run of gpt2, as environment variables or arguments. Needs no package."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainkit.data.documents import OWN
from trainkit.resuming import check_batch
from trainkit.run.run import Run, data_note, die
from trainkit.run.settings import (
    MAY_BE_ZERO,
    VALIDATION_SHARES,
    AccumulatingSettings,
    LocalSettings,
    check_number,
    check_variable,
    family_device,
    fill_settings,
)

# nanoGPT's learning rates for random weights and for published ones.
LEARNING_RATE_SCRATCH = 6e-4
LEARNING_RATE_TUNING = 3e-5
CORPORA = ("openwebtext", "machine", OWN)
# The 256 bytes and the end of text have to fit; a token is two bytes in the files.
VOCAB_SIZES = range(300, 65_537)


@dataclass(frozen=True)
class Settings(AccumulatingSettings, LocalSettings):
    """Settings of a run. The defaults are GPT-2 124M as nanoGPT trains it."""

    gpt2_layers: int = 12
    gpt2_heads: int = 12
    gpt2_width: int = 768
    gpt2_context: int = 1024
    gpt2_dropout: float = 0.0
    vocab_size: int = 50257
    batch_size: int = 12
    """Sequences of a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps of a step. Tokens of a step = ranks * this * batch_size * gpt2_context."""
    compile: Literal["", "yes", "no"] = ""
    """yes or no: torch.compile; empty for yes on GPUs."""
    prefetch: Literal["", "yes", "no"] = ""
    """yes or no: read the next step's batches while this one computes; empty for yes on GPUs."""
    sentinel_every: int = 0
    """Steps between two comparisons of the ranks (trainkit/sentinel.py); 0 for none."""
    device: Literal["", "cpu", "cuda"] = ""
    learning_rate: float = 0.0
    """Highest learning rate; the last one is a tenth of it. 0: 6e-4 from random weights, 3e-5 from others."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the model; a checkpoint fits only a model of the same sizes."""

    layers: int
    heads: int
    width: int
    context: int
    """Tokens of a training sequence; at most the number of positions in the weights."""
    vocab_size: int


@dataclass(frozen=True)
class Prepared:
    """Shards and weights that prepare.py found or made for this run ($RUN_DIR/data.json)."""

    shards: Path
    weights: Path | None
    init_from: str


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Read the settings of this run; dies if one is invalid. 0 steps only validate."""
    settings = fill_settings(
        Settings, arguments, about="Trains GPT-2.", may_be_zero=MAY_BE_ZERO | {"max_steps", "sentinel_every"}
    )
    settings = dataclasses.replace(settings, device=settings.device or family_device())
    on_gpus: Literal["yes", "no"] = "yes" if settings.device == "cuda" else "no"
    settings = dataclasses.replace(
        settings, compile=settings.compile or on_gpus, prefetch=settings.prefetch or on_gpus
    )
    check_variable("CORPUS", CORPORA)
    check_number("VALIDATION_EVERY", VALIDATION_SHARES)
    check_number("VOCAB_SIZE", VOCAB_SIZES, settings.vocab_size)
    if settings.gpt2_width % settings.gpt2_heads:
        die(f"GPT2_WIDTH {settings.gpt2_width} is not a multiple of GPT2_HEADS {settings.gpt2_heads}.")
    return settings


def check_job(settings: Settings, nodes: int) -> None:
    """Die if the nodes cannot divide the global batch; `trainctl submit` calls it before nodes start."""
    check_batch(settings, nodes)


def read_prepared(run: Run) -> Prepared:
    """Read what prepare.py recorded for this run."""
    noted = data_note(run)
    weights = Path(noted["weights"]) if noted["weights"] else None
    return Prepared(Path(noted["shards"]), weights, noted["init_from"])


def shape_of(settings: Settings, weights: Path | None) -> Shape:
    """Return the sizes in the settings, or the sizes of the weights that the run begins with."""
    if weights is None:
        # A multiple of 64 suits the matrix units.
        padded = -(-settings.vocab_size // 64) * 64
        return Shape(
            settings.gpt2_layers, settings.gpt2_heads, settings.gpt2_width, settings.gpt2_context, padded
        )
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "gpt2":
        die(
            f"{weights} contains a model of the type {config.get('model_type')!r}, but this trains gpt2: "
            "give another INIT_FROM."
        )
    if settings.gpt2_context > config["n_positions"]:
        die(
            f"GPT2_CONTEXT is {settings.gpt2_context}, but {weights} has {config['n_positions']} positions: "
            "give at most that many."
        )
    return Shape(
        config["n_layer"], config["n_head"], config["n_embd"], settings.gpt2_context, config["vocab_size"]
    )


def highest_learning_rate(settings: Settings, weights: Path | None) -> float:
    """Return the learning rate of the settings, or the default for random or for trained weights."""
    return settings.learning_rate or (LEARNING_RATE_TUNING if weights else LEARNING_RATE_SCRATCH)
