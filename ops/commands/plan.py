"""The subcommands `trainctl plan` and `trainctl deploy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ops.options import Context, Json, console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ops.plan.plan import Plan

From = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME",
        help="Cluster whose last flags are repeated. Default: the flag cluster_name.",
    ),
]
Diff = Annotated[bool, typer.Option("--diff/--no-diff", help="Also show the resources that cdk diff lists.")]
Validate = Annotated[
    bool,
    typer.Option("--validate/--no-validate", help="Run ParallelCluster's validators. Takes a minute."),
]
OfflinePrices = Annotated[
    bool, typer.Option("--offline-prices", help="Use the catalog's prices instead of AWS's.")
]


def plan(
    *,
    context: Context = None,
    cluster: From = None,
    diff: Diff = True,
    validate: Validate = True,
    offline_prices: OfflinePrices = False,
    as_json: Json = False,
) -> None:
    """Show what `trainctl deploy` with these flags would change: live, rolling or with a stopped fleet.

    The plan includes the jobs that the deploy would end, and the cost before and after. This command changes
    nothing. The exit code is 1 if the deploy would be refused.
    """
    from ops.plan.render import show_plan

    pairs = _given(context, cluster)
    found, _ = _make_plan(
        pairs, of=cluster, must_know=False, diff=diff, validate=validate, offline_prices=offline_prices
    )
    if as_json:
        print_json({"plan": found, "refused": found.refused})
    else:
        show_plan(found, console())
    raise typer.Exit(1 if found.refused else 0)


def deploy(
    *,
    context: Context = None,
    cluster: From = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, for CI.")] = False,
    diff: Diff = True,
    validate: Validate = True,
    offline_prices: OfflinePrices = False,
    as_json: Json = False,
) -> None:
    """Run `cdk deploy` with the flags of the last deploy and these: show the plan, and ask.

    The exit code is 1 if the plan is refused or the answer is no, else that of `cdk deploy`.
    """
    asked = {"diff": diff, "validate": validate, "offline_prices": offline_prices}
    run_deploy(planned(context, cluster, yes=yes, as_json=as_json, **asked), as_json=as_json)


def planned(
    context: list[str] | None, cluster: str | None, *, yes: bool, as_json: bool, **asked: bool
) -> list[str]:
    """Show the plan of a deploy, ask, and return the words of the deploy. Raises typer.Exit if refused."""
    import shlex
    import sys

    from ops.account.deploy_command import cdk_words
    from ops.plan.render import show_plan
    from ops.usage import UsageError
    from training_cluster.stack_names import CLUSTER_STACK

    given = _given(context, cluster)
    if not (yes or sys.stdin.isatty()):
        raise UsageError(
            "There is no terminal to ask on.\n  type:   trainctl deploy --yes, which does not ask"
        )
    found, pairs = _make_plan(given, of=cluster, must_know=True, **asked)
    words = [*cdk_words([CLUSTER_STACK], pairs), *(("--require-approval", "never") if yes else ())]
    if as_json:
        print_json({"plan": found, "refused": found.refused, "deploy": words})
    else:
        show_plan(found, console())
        typer.echo(f"\n  runs:   {shlex.join(words)}")
    if found.refused or not (yes or typer.confirm("Deploy?", err=True)):
        raise typer.Exit(1)
    return words


def run_deploy(words: list[str], *, as_json: bool) -> NoReturn:
    """Run the deploy with the region and profile of this command line, and exit with its exit code."""
    import subprocess
    import sys

    from training_cluster.paths import ROOT

    shown = sys.stderr if as_json else None
    raise typer.Exit(subprocess.run(words, check=False, cwd=ROOT, stdout=shown).returncode)


def _given(context: list[str] | None, cluster: str | None) -> list[str]:
    """Return the pairs of the command line. Raises ConfigurationError if one is wrong by itself."""
    from ops.account.session import account_clients
    from ops.account.stacks import deployed_name
    from ops.context import read_context
    from training_cluster.flags.file import with_flags_file
    from training_cluster.rules.context import read_each

    pairs = context or []
    typed = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if cluster and "cluster_name" not in with_flags_file(typed):
        cluster = deployed_name(cluster, account_clients(), or_failed=False)
        pairs = [f"cluster_name={cluster}", *pairs]
    read_each(read_context(pairs))  # without the recorded ones they may contradict each other
    return pairs


def _make_plan(
    given: Sequence[str],
    *,
    of: str | None,
    must_know: bool,
    diff: bool,
    validate: bool,
    offline_prices: bool,
) -> tuple[Plan, list[str]]:
    """Make the plan of a deploy, and return it with the deploy's FLAG=VALUE pairs."""
    from dataclasses import replace

    from rich.console import Console

    from ops.account.session import account_clients
    from ops.pcluster.dry_run import account_environment, dry_run
    from ops.pcluster.update_policies import ask_library
    from ops.plan.plan import read_plan
    from ops.plan.remembered import kept_flags, read_remembered
    from ops.plan.resources import read_resource_changes
    from ops.price.price_book import ask_prices, catalog_book
    from ops.price.price_list import pricing_client

    client = account_clients()
    pairs, settings = read_remembered(kept_flags(given, client, of=of, must_know=must_know), given)
    with Console(stderr=True).status("Asking the account and the ParallelCluster library ...") as status:
        found = read_plan(
            settings,
            client,
            judge=ask_library,
            prices=lambda configs: (
                catalog_book()
                if offline_prices
                else ask_prices(settings, configs, client=lambda: client, pricing=pricing_client)
            ),
            dry_run=(lambda name, config: dry_run(name, config, environment=account_environment()))
            if validate
            else None,
        )
        if diff:
            status.update("cdk diff ...")
            found = replace(found, resources=tuple(read_resource_changes(pairs)))
    return found, pairs
