"""The subcommand `trainctl dashboards`."""

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def dashboards(
    *,
    export_to: Annotated[
        str | None,
        typer.Option("--export", metavar="FOLDER", help="Write dashboards to it. No AWS call is made."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1024, max=65535, help="Port on this machine.")
    ] = 9090,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Open the cluster's Prometheus on this machine, or write dashboards for your own Grafana.

    Ctrl-C closes the session. A Grafana on this machine can use the same address as a data source.
    """
    import time

    from ops.account.session import account_clients
    from ops.dashboards.export import export
    from ops.dashboards.forward import session

    if export_to is not None:
        if not export_to.strip():
            raise typer.BadParameter("--export takes a folder, such as boards.")
        files = export(Path(export_to))
        if as_json:
            return print_json({"files": files})
        typer.echo("\n".join(map(str, files)))
        return typer.echo(
            "Import them in Grafana: Dashboards, New, Import; then choose your Prometheus.", err=True
        )
    if as_json:
        raise typer.BadParameter("--json is for --export.")
    with session(cluster, account_clients(), port=port) as url:
        typer.echo(f"{url}/graph, {url}/alerts; Ctrl-C closes it")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return None
