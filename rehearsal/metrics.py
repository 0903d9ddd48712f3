"""Reads the metrics that a training job wrote, and holds them to what a job must show."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.problems import RehearsalError

# Steps left out of the speed: the first ones warm caches and threads up.
_WARM_UP_STEPS = 3


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the metrics of one run say."""

    steps: int
    first_loss: float
    last_loss: float
    tokens: int
    tokens_per_s: float
    """Median over the steps after warm-up, all ranks together."""
    world_size: int
    losses: tuple[float, ...]


def read_training(metrics: Path, *, expected_world_size: int) -> Training:
    """Read metrics.jsonl.

    Raises:
        RehearsalError: no line, another world size than expected, or a loss that did not fall.
    """
    if not metrics.is_file() or not (lines := metrics.read_text().splitlines()):
        raise RehearsalError(f"The job wrote no metrics: {metrics} is missing or empty")
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    sizes = {int(row["world_size"]) for row in rows}
    if sizes != {expected_world_size}:
        raise RehearsalError(f"{metrics}: world size {sorted(sizes)}, expected {expected_world_size}")
    losses = tuple(float(row["loss"]) for row in rows)
    speeds = sorted(float(row["tokens_per_s"]) for row in rows[_WARM_UP_STEPS:] or rows)
    training = Training(
        steps=len(rows),
        first_loss=losses[0],
        last_loss=losses[-1],
        tokens=int(rows[-1]["tokens"]),
        tokens_per_s=speeds[len(speeds) // 2],
        world_size=expected_world_size,
        losses=losses,
    )
    if not training.last_loss < training.first_loss:
        raise RehearsalError(
            f"The loss did not fall: {training.first_loss:.3f} at first, {training.last_loss:.3f} at last; "
            f"see {metrics}"
        )
    return training
