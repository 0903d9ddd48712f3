"""`python -m rehearsal stop|validate|faults`: what `make stop`, `validate` and `faults` call.

A rehearsal itself is `trainctl rehearse`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rehearsal import commands
from rehearsal.faults.run import Plan, run_faults
from rehearsal.narrator import Narrator
from rehearsal.validation.run import validate as validate_all
from rehearsal.workspace import Workspace
from training_cluster.problems import ConfigurationError

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def choose_folder(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="Folder that it writes into.")] = commands.FOLDER,
) -> None:
    """Keep the folder for the command."""
    context.obj = folder


@app.command()
def stop(context: typer.Context) -> None:
    """End a rehearsal that was kept or killed."""
    raise typer.Exit(commands.stop(context.obj))


@app.command()
def validate(context: typer.Context) -> None:
    """Compare our flags with the ParallelCluster library's validators."""
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
        typer.Argument(metavar="WORD...", help="Words, one of which a case's name has (ONLY)."),
    ] = None,
    *,
    sample: Annotated[int, typer.Option(help="Number of cases; 0: all (SAMPLE).")] = 0,
    seed: Annotated[int, typer.Option(help="Selects the cases of the sample (SEED).")] = 1,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Fail the first, a middle and the last call (ALL).")
    ] = False,
) -> None:
    """Let AWS, head nodes and functions fail."""
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
