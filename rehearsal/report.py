"""The report at the end of a rehearsal: trainctl's own report, files, and what was emulated."""

from pathlib import Path

from ops.report.html import write_file
from ops.report.page import render_page
from ops.report.record import Run
from ops.report.source import read_folder
from ops.report.text import print_report
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace
from training_cluster.problems import ConfigurationError

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


def read_checked(folder: Path, *, world_size: int) -> Run:
    """Read the folder of a run that has ended.

    Raises:
        RehearsalError: no step, another world size than expected, a loss that did not fall, no bandwidth.
    """
    try:
        run = read_folder(folder)
    except ConfigurationError as error:
        raise RehearsalError(str(error)) from None
    found = run.summary
    if not found.steps:
        raise RehearsalError(f"The job made no step: see {folder}")
    if found.world_size != world_size:
        raise RehearsalError(f"{folder}: world size {found.world_size}, expected {world_size}")
    if found.message_bytes:
        if not found.busbw_gb_per_s:
            raise RehearsalError(f"No message moved: the bandwidth is 0 at every size; see {folder}")
    elif found.first_loss is None or found.last_loss is None or found.last_loss >= found.first_loss:
        raise RehearsalError(
            f"The loss did not fall: {found.first_loss} at first, {found.last_loss} at last; see {folder}"
        )
    return run


def show_report(run: Run, *, workspace: Workspace, narrator: Narrator, container: bool = False) -> None:
    """Print the report of the run, write its page, and list the files and what was emulated."""
    print_report([run], narrator.console)
    narrator.say(_summary(run))
    page = workspace.report / "run.html"
    write_file(render_page([run]), page, command="rehearse")
    folders = {"metrics": "runs", "checkpoints": "checkpoints", "data": "datasets"}
    places = {name: workspace.shared / folder / run.workload for name, folder in folders.items()}
    for name, place in (places | {"page": page, "logs": workspace.logs}).items():
        narrator.say(f"{name + ':':14}{place}")
    real = REAL + (REAL_IN_CONTAINERS if container else ())
    emulated = EMULATED + (EMULATED_IN_CONTAINERS if container else ())
    for heading, lines in (("Real here:", real), ("Emulated, so not shown:", emulated)):
        narrator.console.print(f"   [bold]{heading}[/]")
        for line in lines:
            narrator.say(f"  - {line}")


def _summary(run: Run) -> str:
    found = run.summary
    if found.message_bytes:
        measured = f"{found.busbw_gb_per_s:.2f} GB/s bus bandwidth at {found.message_bytes:,} bytes"
    else:
        speed = f", {found.tokens_per_s:,.0f} tokens/s" if found.tokens_per_s else ""
        measured = f"loss {found.first_loss:.3f} -> {found.last_loss:.3f} in {found.steps} steps{speed}"
    return f"{measured}, world size {found.world_size}"
