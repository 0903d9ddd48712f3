"""The subcommand `trainctl verify`."""

import contextlib
from typing import Annotated

import typer

from ops.options import Cluster, Force, Html, Json, console, print_json


def verify(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Start no compute nodes. The default without --nodes.")
    ] = False,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            "-N",
            metavar="N",
            min=1,
            help="Also train on N nodes for about ten minutes, which costs money.",
        ),
    ] = None,
    gpu: Annotated[
        bool,
        typer.Option(
            "--gpu", help="Only compare one GPU node with recorded figures, for minutes, which costs money."
        ),
    ] = False,
    html: Html = None,
    force: Force = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Check on a deployed cluster what no rehearsal can prove. Reverts all changes that it makes.

    The exit code is 1 if a check fails, 2 if no check could run.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from ops.account.aws_errors import explain
    from ops.account.session import account_clients
    from ops.report.html import check_file, write_file
    from ops.usage import UsageError
    from ops.verify import gpu as gpus
    from ops.verify import report
    from ops.verify.checks import run_checks
    from ops.verify.interruption import as_ctrl_c
    from ops.verify.nodes import run_node_checks
    from ops.verify.scene import open_scene
    from training_cluster.problems import ConfigurationError

    if quick + gpu + bool(nodes) > 1:
        raise typer.BadParameter("--quick starts no node, --nodes some, --gpu one: give one of them.")
    if html:
        check_file(html, force=force, command="verify")
    try:
        scene = open_scene(cluster, account_clients(), say, nodes=nodes or 0)
        scene = gpus.on_gpu_node(scene) if gpu else scene
    except (BotoCoreError, ClientError) as error:
        # 2, not 1: nothing was compared.
        raise UsageError(f"verify: {explain(error)}") from None
    except ConfigurationError as error:
        raise UsageError(str(error)) from None
    with as_ctrl_c():
        if gpu:
            results = run_node_checks(scene, gpus.GPU_CHECKS, gpus.WORKLOADS)
        else:
            results = [*run_checks(scene), *(run_node_checks(scene) if nodes else ())]
    found = report.Report(
        cluster_name=scene.cluster.name,
        region=scene.cluster.region,
        is_rehearsal=scene.is_rehearsal,
        nodes=scene.nodes,
        results=results,
    )
    if html:
        write_file(report.render_page(found), html, command="verify")
    if as_json:
        print_json({**report.as_json(found), "files": {"html": html}})
    else:
        for each in results:
            line = f"{each.verdict:15}{each.id}: {each.seen}; expected: {each.expected}"
            console().print(line, markup=False)
            console().print(f"{'':15}not in a rehearsal: {each.not_in_rehearsal}", markup=False)
        console().print(
            f"{found.count('held')} held, {found.count('differs')} differ, "
            f"{found.count('could not look')} could not be looked at"
        )
        if html:
            console().print(f"page:    {html}", markup=False)
    raise typer.Exit(1 if found.count("differs") else 0)


def say(line: str) -> None:
    """Print a line about a wait on stderr, unless its terminal is closed, which must not stop a clean-up."""
    with contextlib.suppress(OSError):
        typer.echo(line, err=True)
