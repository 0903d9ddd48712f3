"""The subcommand `trainctl plan`."""

from typing import Annotated

import typer

from ops.options import Context, Json, console, print_json


def plan(
    *,
    context: Context = None,
    diff: Annotated[
        bool, typer.Option("--diff/--no-diff", help="Also show the resources that cdk diff lists.")
    ] = True,
    validate: Annotated[
        bool,
        typer.Option("--validate/--no-validate", help="Run ParallelCluster's validators. Takes a minute."),
    ] = True,
    offline_prices: Annotated[
        bool, typer.Option("--offline-prices", help="Use the catalog's prices instead of AWS's.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a deploy with these flags would change, and how: live, rolling or with a stopped fleet.

    The plan includes the jobs that the deploy would end, and the cost before and after. This command changes
    nothing. The exit code is 1 if the deploy would be refused.
    """
    from dataclasses import replace

    from rich.console import Console

    from ops.account.session import account_clients
    from ops.context import read_context
    from ops.pcluster.dry_run import account_environment, dry_run
    from ops.pcluster.update_policies import ask_library
    from ops.plan.plan import read_plan
    from ops.plan.render import show_plan
    from ops.plan.resources import read_resource_changes
    from ops.price.price_book import ask_prices, catalog_book
    from ops.price.price_list import pricing_client
    from training_cluster.rules.context import read_settings

    settings = read_settings(read_context(context or []))
    client = account_clients()
    with Console(stderr=True).status("Asking the account and the ParallelCluster library ...") as status:
        found = read_plan(
            settings,
            client,
            judge=ask_library,
            prices=lambda wanted: (
                catalog_book()
                if offline_prices
                else ask_prices(wanted, client=lambda: client, pricing=pricing_client)
            ),
            dry_run=(lambda name, config: dry_run(name, config, environment=account_environment()))
            if validate
            else None,
        )
        if diff:
            status.update("cdk diff ...")
            found = replace(found, resources=tuple(read_resource_changes(context or [])))
    if as_json:
        print_json({"plan": found, "refused": found.refused})
    else:
        show_plan(found, console())
    raise typer.Exit(1 if found.refused else 0)
