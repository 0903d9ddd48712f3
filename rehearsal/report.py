"""The report at the end of a rehearsal: measurements, files, and what was emulated."""

import os
from pathlib import Path

from rich.markup import escape

from rehearsal.metrics import Curve, Measured
from rehearsal.narrator import Narrator
from rehearsal.workspace import Workspace
from training_cluster.paths import ROOT

REAL = (
    "the CDK app, its templates and the CDK CLI",
    "the cluster provider's code, AWS ParallelCluster's library, validators and templates",
    "the scripts, shipped to the bucket, fetched from it and verified",
    "Slurm: partitions and node names of the deployed config, nodes that start on demand",
    "the job: data preparation, rendezvous, world size, training, checkpoints",
)
EMULATED = (
    "AWS itself (ministack and moto): quotas, capacity and prices are not checked; rights only for functions",
    "instances: a node is a slurmd on this machine's CPU; no accelerator, no EFA, no boot",
    "FSx for Lustre: a folder; no mount, no synchronisation with the bucket",
    "the head node's own set-up (ParallelCluster's recipes), and all durations",
)
REAL_IN_CONTAINERS = (
    "the container: an image with its own files, unpacked on each node and entered as the user",
)
EMULATED_IN_CONTAINERS = ("Pyxis and Enroot: stand-ins without a registry, GPUs and Enroot's hooks",)


def print_report(
    measured: Measured,
    *,
    title: str,
    workload: str,
    workspace: Workspace,
    narrator: Narrator,
    container: bool = False,
) -> None:
    """Print the measurements, draw their curve, and list the files and what was emulated."""
    curve = measured.curve
    png = workspace.report / f"{curve.name}.png"
    draw_png_curve(curve, title=title, path=png)
    narrator.console.print(escape(draw_terminal_curve(curve)))
    narrator.say(measured.summary)
    places = {
        name: workspace.shared / folder / workload
        for name, folder in (("metrics", "runs"), ("checkpoints", "checkpoints"), ("data", "datasets"))
    }
    for name, place in (places | {f"{curve.name} curve": png, "logs": workspace.logs}).items():
        narrator.say(f"{name + ':':17}{place}")
    real = REAL + (REAL_IN_CONTAINERS if container else ())
    emulated = EMULATED + (EMULATED_IN_CONTAINERS if container else ())
    for heading, lines in (("Real here:", real), ("Emulated, so not shown:", emulated)):
        narrator.console.print(f"   [bold]{heading}[/]")
        for line in lines:
            narrator.say(f"  - {line}")


def draw_terminal_curve(curve: Curve, *, width: int = 72, height: int = 14) -> str:
    """Draw the curve with characters."""
    import plotext  # noqa: PLC0415

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    plotext.plot(range(1, len(curve.values) + 1), list(curve.values), marker="braille")
    plotext.title(curve.name)
    plotext.xlabel(curve.x_label)
    return str(plotext.uncolorize(plotext.build()))


def draw_png_curve(curve: Curve, *, title: str, path: Path) -> None:
    """Draw the curve as a PNG."""
    os.environ.setdefault("MPLCONFIGDIR", str(ROOT / ".cache" / "matplotlib"))
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    axes.plot(range(1, len(curve.values) + 1), curve.values, color="#1f6feb", linewidth=2)
    axes.set(title=title, xlabel=curve.x_label, ylabel=curve.y_label)
    axes.grid(visible=True, alpha=0.3)
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    figure.savefig(path)
    plt.close(figure)
