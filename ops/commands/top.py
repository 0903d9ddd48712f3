"""The subcommand `trainctl top`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=3600, help="Time between two refreshes.")
    ] = 5,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of a Prometheus to query instead of the cluster's."),
    ] = None,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Show nodes, jobs, GPU use and tokens per second, live. Requires -c metrics=prometheus or amp.

    All queries use one Session Manager session. Ctrl-C closes it.
    """
    from contextlib import nullcontext

    from rich.console import Console

    from ops.account.session import account_clients
    from ops.dashboards.figures import read_figures
    from ops.dashboards.forward import session
    from ops.dashboards.prometheus import Prometheus, is_address
    from ops.dashboards.screen import WIDE, follow, render

    if url is not None and not is_address(url):
        raise typer.BadParameter(f"--url takes an address such as http://127.0.0.1:9090, not {url!r}.")
    with nullcontext(url) if url else session(cluster, account_clients()) as address:
        prometheus = Prometheus(str(address).rstrip("/"))
        if as_json:
            return print_json(read_figures(prometheus.ask))
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = WIDE  # a pipe has none
        if once or not console.is_terminal:
            return console.print(render(read_figures(prometheus.ask), width=console.width))
        return follow(
            console, lambda: render(read_figures(prometheus.ask), width=console.width), every_s=every
        )
