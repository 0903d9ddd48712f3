"""Stop a rehearsal, validate all families, or inject faults: `make stop`, `make validate` and `make faults`.

To rehearse, use `trainctl rehearse`.
"""

from pathlib import Path
from typing import Annotated

import typer

from rehearsal import commands
from rehearsal.faults.run import Plan, run_faults
from rehearsal.narrator import Narrator
from rehearsal.validation.run import validate as validate_all
from rehearsal.workspace import Workspace
from training_cluster.problems import ConfigurationError

app = typer.Typer(
    help=__doc__,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def choose_folder(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write to.")] = commands.FOLDER,
) -> None:
    """Store the folder for the command."""
    context.obj = folder


@app.command()
def stop(context: typer.Context) -> None:
    """Stop a rehearsal that was kept or killed."""
    raise typer.Exit(commands.stop(context.obj))


@app.command()
def validate(context: typer.Context) -> None:
    """Check every family, capacity and OS with the ParallelCluster library's validators."""
    code = commands.run_command(
        lambda workspace, narrator: commands.run_alone(workspace, lambda: validate_all(workspace, narrator)),
        context.obj,
    )
    raise typer.Exit(code)


@app.command()
def faults(
    context: typer.Context,
    only: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="Run only cases whose name contains one of these words (ONLY)."),
    ] = None,
    *,
    sample: Annotated[int, typer.Option(metavar="N", help="Number of cases. 0 runs all (SAMPLE).")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed that selects the sample (SEED).")] = 1,
    everywhere: Annotated[
        bool, typer.Option("--all", help="For each call, fail the first, a middle and the last one (ALL).")
    ] = False,
) -> None:
    """Deploy while AWS, head nodes and functions fail, one at a time."""
    plan = Plan(size=sample, seed=seed, only=tuple(only or ()), everywhere=everywhere)

    def work(workspace: Workspace, narrator: Narrator) -> None:
        if sample < 0:
            raise ConfigurationError(
                f"SAMPLE={sample}: not allowed.\n  allowed: a number of cases, or 0 for all\n"
                "  type:    make faults SAMPLE=24"
            )
        commands.run_alone(workspace, lambda: run_faults(workspace, narrator, plan))

    raise typer.Exit(commands.run_command(work, context.obj))


if __name__ == "__main__":
    app(prog_name="python -m rehearsal")
