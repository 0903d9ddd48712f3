"""The subcommand `trainctl preflight`."""

from typing import Annotated

import typer

from ops.options import Context, Json, console, print_json


def preflight(
    context: Context = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Also run ParallelCluster's validators. Takes up to a minute."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check whether a deploy with these flags would succeed and its cluster would work. Changes nothing.

    The exit code is 1 if the deploy would fail, or its cluster would not work.
    """
    from rich.console import Console

    # The status line appears on terminals only, and before the imports, which take a second.
    with Console(stderr=True).status("preflight: reading the flags") as shown:
        from ops.context import read_context
        from training_cluster.rules.context import read_settings

        read = read_context(context or [])
        settings = read_settings(read)
        from dataclasses import replace

        from ops.account.region_and_profile import with_account
        from ops.account.session import account_clients
        from ops.preflight.account.credentials import DEFAULT_QUALIFIER, QUALIFIER_KEY
        from ops.preflight.checks import problem_count, report, run_checks

        findings = run_checks(
            settings,
            account_clients(),
            dryrun=dry_run,
            qualifier=str(read.get(QUALIFIER_KEY, DEFAULT_QUALIFIER)),
            starts=lambda name: shown.update(f"preflight: {name}"),
        )
    findings = [replace(each, mend=with_account(each.mend)) for each in findings]
    if not as_json:
        raise typer.Exit(report(findings, console()))
    problems = problem_count(findings)
    print_json({"findings": findings, "problems": problems})
    raise typer.Exit(1 if problems else 0)
