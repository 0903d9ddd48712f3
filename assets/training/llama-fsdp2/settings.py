"""Settings of a run of llama-fsdp2: environment variables that are arguments as well. Needs no package."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from sizes import SIZES, Shape
from trainkit.run.run import die
from trainkit.run.settings import check_words, family_device, fill_settings


@dataclass(frozen=True)
class Settings:
    """Settings of one run."""

    llama_size: str = "1b"
    """A name of sizes.py; the next six replace single sizes of it, 0 (or nothing) leaves them."""
    llama_layers: int = 0
    llama_width: int = 0
    llama_heads: int = 0
    llama_kv_heads: int = 0
    llama_hidden: int = 0
    llama_tied: str = ""
    """yes or no."""
    vocab_size: int = 0
    llama_context: int = 8192
    """Tokens of a training sequence."""
    batch_size: int = 1
    """Sequences a rank and micro-step."""
    gradient_accumulation: int = 1
    """Micro-steps a step. Tokens a step = ranks * this * batch_size * llama_context."""
    max_steps: int = 1000
    learning_rate: float = 3e-4
    """At its highest; it ends at a tenth."""
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 1337
    checkpoint_every: int = 500
    keep_checkpoints: int = 2
    log_every: int = 10
    eval_batches: int = 10
    """Validation batches a rank, after the last step."""
    activation_checkpointing: str = "full"
    """full: all layers compute their activations again in the backward pass; 2: every second one; none."""
    compile: str = "no"
    """yes: layers and loss by torch.compile; the first step then takes minutes."""
    shard: str = "all"
    """all: each rank holds 1/ranks of the state; node: 1/ranks-of-a-node, and nodes hold the same (HSDP)."""
    verify_data: str = "yes"
    """no: believe that the shards are what the manifest says."""
    device: str = ""
    """cpu or cuda; by default what the instance family has."""
    mixed_precision: str = "no"
    """bf16, or no (fp32); the instance family says which."""

    @property
    def recompute_every(self) -> int:
        """Distance of the layers that keep no activations: 1 for each layer, 0 for none."""
        named = {"none": 0, "full": 1}
        given = self.activation_checkpointing
        return named[given] if given in named else int(given)


# Where 0 means something; all other whole numbers begin at 1.
SIZE_NAMES = ("llama_layers", "llama_width", "llama_heads", "llama_kv_heads", "llama_hidden", "vocab_size")
MAY_BE_ZERO = frozenset({"warmup_steps", "eval_batches", "seed", *SIZE_NAMES})
ALLOWED = {
    "llama_size": tuple(SIZES),
    "llama_tied": ("", "yes", "no"),
    "compile": ("yes", "no"),
    "shard": ("all", "node"),
    "verify_data": ("yes", "no"),
    "device": ("cpu", "cuda"),
}


def read_settings(arguments: list[str] | None = None) -> Settings:
    """Read the settings: arguments win over the environment, that over the defaults; die on a wrong one."""
    settings = fill_settings(Settings, arguments, about="Trains a Llama.", may_be_zero=MAY_BE_ZERO)
    settings = dataclasses.replace(settings, device=settings.device or family_device())
    check_words(settings, ALLOWED)
    given = settings.activation_checkpointing
    if given not in {"none", "full"} and not (given.isdecimal() and int(given)):
        die(
            f'ACTIVATION_CHECKPOINTING is "{given}"; allowed: none, full, or a number: 2 is '
            "every second layer."
        )
    return settings


def refuse_fp16(settings: Settings) -> None:
    """Die on fp16; prepare.py cannot, since it does not see arguments, which win over the family's fp16."""
    if settings.mixed_precision == "fp16":
        die(
            "MIXED_PRECISION is fp16, for which the loss would have to be scaled, and here it is not: give "
            "bf16 (NVIDIA Ampere or newer), or train in fp32 by the argument --mixed-precision no (V100, T4)."
        )


def shape_of(settings: Settings) -> Shape:
    """Return the model's sizes; die unless heads and widths fit each other."""
    replaced = {
        name.removeprefix("llama_"): value for name in SIZE_NAMES if (value := getattr(settings, name))
    }
    shape = dataclasses.replace(SIZES[settings.llama_size], **replaced)
    if settings.llama_tied:
        shape = dataclasses.replace(shape, tied=settings.llama_tied == "yes")
    if shape.width % (2 * shape.heads):
        die(
            f"LLAMA_WIDTH {shape.width} cannot be cut into LLAMA_HEADS {shape.heads} of an even width each: "
            f"give a multiple of {2 * shape.heads}."
        )
    if shape.heads % shape.kv_heads:
        die(f"LLAMA_HEADS {shape.heads} is no multiple of LLAMA_KV_HEADS {shape.kv_heads}: give one that is.")
    return shape


def learning_rate(step: int, settings: Settings) -> float:
    """Return the rate of a step: linear warm-up, then a cosine down to a tenth of it at max_steps."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, settings.max_steps - settings.warmup_steps)
    return settings.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
