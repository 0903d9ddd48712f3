"""Options, help and output functions that the subcommands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from training_cluster.stack_names import DEFAULT_CLUSTER

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Cluster = Annotated[
    str,
    typer.Option(
        help="Name of the cluster: its flag cluster_name.",
        metavar="NAME",
        default_factory=lambda: DEFAULT_CLUSTER,
        show_default=DEFAULT_CLUSTER,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Partition = Annotated[
    str | None, typer.Option(help="Slurm partition. Default: the cluster's default.", metavar="NAME")
]
Follow = Annotated[bool, typer.Option("--follow", help="Then follow the job, like `logs --follow`.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a page that loads no other files.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing FILE.")]
Context = Annotated[
    list[str] | None,
    typer.Option("--context", "-c", metavar="FLAG=VALUE", help="Flag, as for cdk. Can be repeated."),
]


class Command(TyperCommand):
    """A subcommand whose help and errors show no terms of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, whose help shows no Python types."""
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an error has no prefix of pydantic, which typer lets through."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


class Group(TyperGroup):
    """A group of subcommands with the same help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, whose help shows no Python types."""
        return _without_types(super().get_params(ctx))


def _without_types(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if isinstance(each, TyperOption) and each.is_flag:
            each.metavar = ""
        elif isinstance(each, TyperArgument):
            each.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
    return parameters


def finite(number: float | None) -> float | None:
    """Refuse infinity and NaN, which Python reads as numbers; the callback of an option."""
    if number is not None and not math.isfinite(number):
        raise typer.BadParameter(f"{number} is not a finite number.")
    return number


def console() -> Console:
    """Return a console that does not wrap lines, so that commands can be copied."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def print_table(table: Table, console: Console) -> None:
    """Print a table that fits the terminal, or COLUMNS: cells are wrapped, and long words folded, not cut."""
    for column in table.columns:
        column.overflow = "fold"
    console.print(table, soft_wrap=False)


def print_json(content: Any) -> None:
    """Print JSON for programs; dataclasses and dates are supported."""
    from pydantic_core import to_json

    typer.echo(to_json(content, indent=2))
