"""The subcommand `trainctl diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ops.options import Cluster, Json, console, print_json

if TYPE_CHECKING:
    from ops.diagnose.texts import Evidence


def diagnose(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Logs: files, folders or .tar.gz archives. No AWS call is made."),
    ] = None,
    *,
    cluster: Cluster,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Also read the log of this job.")] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tar.gz", help="Write everything that was read to this file, with secrets masked."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the likeliest causes of a failure, each with the line that shows it and the commands to type.

    Without a PATH, the command reads stack events, failure logs in the bucket, the head node's console, the
    cluster's logs in CloudWatch, `sinfo -R` and the list of jobs. The exit code is 1 if something has failed,
    and no known cause comes first.
    """
    from dataclasses import replace

    from rich.text import Text

    from ops.diagnose.bundle import check_bundle
    from ops.diagnose.diagnose import bundle_evidence, diagnose_evidence
    from ops.diagnose.render import render, render_bundle

    if bundle:
        check_bundle(bundle)
    evidence, cluster = _evidence(paths or [], cluster, job)
    found = diagnose_evidence(evidence, cluster=cluster, about=f"job-{job}" if job else None)
    if as_json:
        print_json(replace(found, bundle=bundle))
    else:
        console().print(Text("\n".join(render(found))))
    if bundle:
        bundle_evidence(evidence, found, bundle)
        if not as_json:
            console().print(Text(render_bundle(bundle)))
    raise typer.Exit(0 if found.is_answered else 1)


def _evidence(paths: list[Path], cluster: str, job: str | None) -> tuple[Evidence, str]:
    """Return what there is to read, and the name of its cluster."""
    from ops.usage import UsageError

    if job is not None and not job.isdecimal():
        raise UsageError(f"--job {job}: give the number of a job, as squeue shows it.")
    if paths:
        from ops.diagnose.files import Files

        if job is not None:
            raise UsageError(
                "diagnose: --job reads from the head node, a PATH from this machine: give one of them."
            )
        return Files(paths), cluster
    from ops.account.session import account_clients
    from ops.diagnose.account import gather

    found = gather(
        cluster, account_clients(), job=job, progress=lambda line: typer.echo(f"{line} ...", err=True)
    )
    return found, found.cluster_name
