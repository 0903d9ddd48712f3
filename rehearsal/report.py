"""What a rehearsal shows at its end: loss, speed, world size, files, and what was emulated."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.problems import RehearsalError
from rehearsal.workspace import PROJECT

# Steps left out of the speed: the first ones warm caches and threads up.
_WARM_UP_STEPS = 3

REAL = (
    "the CDK app, its templates and the CDK CLI",
    "the cluster provider's code, AWS ParallelCluster's library, validators and templates",
    "the scripts, shipped to the bucket, fetched from it and verified",
    "Slurm: partitions and node names of the deployed config, nodes that start on demand",
    "the job: data preparation, rendezvous, world size, training, checkpoints",
)
EMULATED = (
    "AWS itself (ministack and moto): no permissions, quotas, capacity or prices are checked",
    "instances: a node is a slurmd on this machine's CPU; no accelerator, no EFA, no boot",
    "FSx for Lustre: a folder; no mount, no synchronisation with the bucket",
    "the head node's own set-up (ParallelCluster's recipes), and how long anything takes",
)


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


def draw_terminal_curve(losses: Sequence[float], *, width: int = 72, height: int = 14) -> str:
    """Draw the loss curve with characters."""
    import plotext  # noqa: PLC0415

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    plotext.plot(range(1, len(losses) + 1), list(losses), marker="braille")
    plotext.title("loss")
    plotext.xlabel("step")
    return str(plotext.uncolorize(plotext.build()))


def draw_png_curve(losses: Sequence[float], *, title: str, path: Path) -> None:
    """Draw the loss curve as a PNG."""
    os.environ.setdefault("MPLCONFIGDIR", str(PROJECT / ".cache" / "matplotlib"))
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    axes.plot(range(1, len(losses) + 1), losses, color="#1f6feb", linewidth=2)
    axes.set(title=title, xlabel="step", ylabel="training loss (nats a token)")
    axes.grid(visible=True, alpha=0.3)
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    figure.savefig(path)
    plt.close(figure)
