"""Settings of a run of gpt2: environment variables that are arguments as well. Needs no package."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from trainkit.run.run import Run, data_note, die
from trainkit.run.settings import check_words, family_device, fill_settings

LEARNING_RATE_SCRATCH = 6e-4
LEARNING_RATE_TUNING = 3e-5
"""nanoGPT's, for random weights and for published ones."""


@dataclass(frozen=True)
class Settings:
    """What may differ between runs. The defaults are GPT-2 124M as nanoGPT trains it."""

    gpt2_layers: int = 12
    gpt2_heads: int = 12
    gpt2_width: int = 768
    gpt2_context: int = 1024
    gpt2_dropout: float = 0.0
    vocab_size: int = 50257
    batch_size: int = 12
    """Sequences a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps a step. Tokens a step = ranks * this * batch_size * gpt2_context."""
    max_steps: int = 1000
    learning_rate: float = 0.0
    """At its highest; it ends at a tenth. 0: 6e-4 from random weights, 3e-5 from others."""
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 1337
    checkpoint_every: int = 200
    keep_checkpoints: int = 2
    log_every: int = 10
    eval_batches: int = 20
    """Validation batches a rank, after the last step."""
    verify_data: str = "yes"
    """no: believe that the shards are what the manifest says."""
    device: str = ""
    """cpu or cuda; by default what the instance family has."""
    mixed_precision: str = "no"
    """bf16, fp16 or no; the instance family says which."""


# Where 0 means something; all other whole numbers begin at 1.
MAY_BE_ZERO = frozenset({"max_steps", "warmup_steps", "eval_batches", "seed"})
WORDS = {"device": ("cpu", "cuda"), "verify_data": ("yes", "no")}


@dataclass(frozen=True)
class Shape:
    """The model's sizes: what has to be equal for a checkpoint to fit."""

    layers: int
    heads: int
    width: int
    context: int
    """Tokens of a training sequence; of positions that the weights have, it may be fewer."""
    vocab_size: int


@dataclass(frozen=True)
class Prepared:
    """What prepare.py found or made for this run: $RUN_DIR/data.json."""

    shards: Path
    weights: Path | None
    init_from: str


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Arguments win over the environment, the environment over the defaults; dies on what makes no sense."""
    settings = fill_settings(Settings, arguments, about="Trains GPT-2.", may_be_zero=MAY_BE_ZERO)
    settings = dataclasses.replace(settings, device=settings.device or family_device())
    check_words(settings, WORDS)
    return settings


def read_prepared(run: Run) -> Prepared:
    """What prepare.py noted for this run."""
    noted = data_note(run)
    weights = Path(noted["weights"]) if noted["weights"] else None
    return Prepared(Path(noted["shards"]), weights, noted["init_from"])


def shape_of(settings: Settings, weights: Path | None) -> Shape:
    """The model's sizes: those of the settings, or of the weights that the run begins with."""
    if weights is None:
        if settings.gpt2_width % settings.gpt2_heads:
            die(f"GPT2_WIDTH {settings.gpt2_width} is no multiple of GPT2_HEADS {settings.gpt2_heads}.")
        # A multiple of 64 suits the matrix units.
        padded = -(-settings.vocab_size // 64) * 64
        return Shape(
            settings.gpt2_layers, settings.gpt2_heads, settings.gpt2_width, settings.gpt2_context, padded
        )
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "gpt2":
        die(
            f"{weights} holds a model of the type {config.get('model_type')!r}, and this trains gpt2: "
            "give another INIT_FROM."
        )
    if settings.gpt2_context > config["n_positions"]:
        die(
            f"GPT2_CONTEXT is {settings.gpt2_context} and {weights} has {config['n_positions']} positions: "
            "give as many at most."
        )
    return Shape(
        config["n_layer"], config["n_head"], config["n_embd"], settings.gpt2_context, config["vocab_size"]
    )


def highest_learning_rate(settings: Settings, weights: Path | None) -> float:
    """As asked for, or what suits the weights."""
    return settings.learning_rate or (LEARNING_RATE_TUNING if weights else LEARNING_RATE_SCRATCH)
