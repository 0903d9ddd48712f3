"""What a rehearsal shows at its end: loss, speed, world size, files, and what was emulated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from rehearsal.metrics import Training
from rehearsal.narrator import Narrator
from rehearsal.workspace import PROJECT, Workspace

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


def print_report(
    training: Training, *, title: str, workload: str, workspace: Workspace, narrator: Narrator
) -> None:
    """Print what was measured, write the loss curve, say where the files are and what was not real."""
    png = workspace.report / "loss.png"
    draw_png_curve(training.losses, title=title, path=png)
    narrator.console.print(escape(draw_terminal_curve(training.losses)))
    narrator.say(
        f"loss {training.first_loss:.3f} -> {training.last_loss:.3f} in {training.steps} steps, "
        f"{training.tokens_per_s:,.0f} tokens/s, world size {training.world_size}"
    )
    places = {
        name: workspace.shared / folder / workload
        for name, folder in (("metrics", "runs"), ("checkpoints", "checkpoints"), ("data", "datasets"))
    }
    for name, place in (places | {"loss curve": png, "logs": workspace.logs}).items():
        narrator.say(f"{name + ':':13}{place}")
    for heading, lines in (("Real here:", REAL), ("Emulated, so not shown:", EMULATED)):
        narrator.console.print(f"   [bold]{heading}[/]")
        for line in lines:
            narrator.say(f"  - {line}")


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
