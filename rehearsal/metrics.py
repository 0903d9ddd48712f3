"""The metrics of a job, and checks of what a job must show."""

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.problems import RehearsalError

# Warm-up steps, which are left out of the speed.
_WARM_UP_STEPS = 3


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The curve that is drawn for a run."""

    name: str
    """Name of the picture's file."""
    values: tuple[float, ...]
    """Values, one per line of metrics.jsonl."""
    x_label: str
    y_label: str


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The results in the metrics of one run."""

    world_size: int
    summary: str
    """One line that summarizes the run."""
    curve: Curve


def read_metrics(metrics: Path, *, expected_world_size: int) -> Measured:
    """Read metrics.jsonl: steps of training, or message sizes of an all-reduce test.

    Raises:
        RehearsalError: no step, another world size than expected, a loss that did not fall, no bandwidth.
    """
    if not metrics.is_file() or not (lines := metrics.read_text().splitlines()):
        raise RehearsalError(f"The job wrote no metrics: {metrics} is missing or empty")
    # A validation has a row of its own.
    rows: list[dict[str, Any]] = [row for line in lines if "val_loss" not in (row := json.loads(line))]
    if not rows:
        raise RehearsalError(f"The job made no step: {metrics} has only validations")
    sizes = {int(row["world_size"]) for row in rows}
    if sizes != {expected_world_size}:
        raise RehearsalError(f"{metrics}: world size {sorted(sizes)}, expected {expected_world_size}")
    if "loss" in rows[0]:
        return _training(rows, metrics, expected_world_size)
    return _bandwidth(rows, metrics, expected_world_size)


def _training(rows: list[dict[str, Any]], metrics: Path, world_size: int) -> Measured:
    # null is written for a loss that is not finite.
    losses = tuple(math.nan if row["loss"] is None else float(row["loss"]) for row in rows)
    if not losses[-1] < losses[0]:
        raise RehearsalError(
            f"The loss did not fall: {losses[0]:.3f} at first, {losses[-1]:.3f} at last; see {metrics}"
        )
    speed = statistics.median(float(row["tokens_per_s"]) for row in rows[_WARM_UP_STEPS:] or rows)
    return Measured(
        world_size=world_size,
        summary=f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(rows)} steps, {speed:,.0f} tokens/s, "
        f"world size {world_size}",
        curve=Curve(name="loss", values=losses, x_label="step", y_label="training loss (nats a token)"),
    )


def _bandwidth(rows: list[dict[str, Any]], metrics: Path, world_size: int) -> Measured:
    bandwidths = tuple(float(row["busbw_gb_per_s"]) for row in rows)
    best = max(rows, key=lambda row: float(row["busbw_gb_per_s"]))
    if not float(best["busbw_gb_per_s"]) > 0:
        raise RehearsalError(f"No message moved: the bandwidth is 0 at every size; see {metrics}")
    return Measured(
        world_size=world_size,
        summary=f"{float(best['busbw_gb_per_s']):.2f} GB/s bus bandwidth at {int(best['message_bytes']):,} "
        f"bytes, {len(rows)} sizes, world size {world_size}",
        curve=Curve(
            name="bandwidth",
            values=bandwidths,
            x_label=f"message size, doubled from {int(rows[0]['message_bytes']):,} bytes",
            y_label="bus bandwidth (GB/s)",
        ),
    )
