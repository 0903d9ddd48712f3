"""The subcommand `trainctl verify`."""

from __future__ import annotations

import typer

from ops.options import Cluster, Json, console, print_json


def verify(cluster: Cluster = "training", as_json: Json = False) -> None:
    """Compare a deployed cluster with claims that no rehearsal can prove. Changes nothing.

    The exit code is 1 if something differs.
    """
    from botocore.exceptions import NoCredentialsError

    from ops.account.aws_errors import explain
    from ops.account.session import account_clients
    from ops.usage import UsageError
    from ops.verify.checks import run_checks

    try:
        results = run_checks(cluster, account_clients())
    except NoCredentialsError as error:
        raise UsageError(f"verify: {explain(error)}") from None
    differing = sum(each.verdict == "differs" for each in results)
    if as_json:
        print_json({"checks": results, "differing": differing})
    else:
        for each in results:
            line = f"{each.verdict:15}{each.id}: {each.seen}; expected: {each.expected}"
            console().print(line, markup=False)
            console().print(f"{'':15}not in a rehearsal: {each.not_in_rehearsal}", markup=False)
    raise typer.Exit(1 if differing else 0)
