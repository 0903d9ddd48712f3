"""Settings of a run of workload_template, as environment variables or arguments. Needs no package.

trainctl submit reads them on a laptop, and refuses a wrong one before a node starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from trainkit.resuming import check_batch
from trainkit.run.run import die
from trainkit.run.settings import AccumulatingSettings, family_device, fill_settings


@dataclasses.dataclass(frozen=True)
class Settings(AccumulatingSettings):
    """Settings of a run."""

    model_layers: int = 2
    model_heads: int = 4
    model_width: int = 96
    """Width of the model; with 2 layers and a context of 64 it has 0.26 M parameters."""
    model_context: int = 64
    """Bytes of a sequence."""
    device: Literal["", "cpu", "cuda"] = ""
    batch_size: int = 32
    """Sequences of a rank and micro-step."""
    learning_rate: float = 2e-3
    warmup_steps: int = 50
    weight_decay: float = 0.01

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings of the model, which checkpoints have to share."""
        return ("model_layers", "model_heads", "model_width", "model_context")


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read the settings of this run; dies if one is invalid."""
    settings = fill_settings(Settings, arguments, about="Trains a small language model.")
    if settings.model_width % settings.model_heads:
        die(f"MODEL_WIDTH {settings.model_width} is not a multiple of MODEL_HEADS {settings.model_heads}.")
    return dataclasses.replace(settings, device=settings.device or family_device())


def check_job(settings: Settings, nodes: int) -> None:
    """Die if the global batch cannot be divided among the ranks of so many nodes."""
    check_batch(settings, nodes)
