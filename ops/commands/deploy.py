"""The subcommand `trainctl deploy`."""

from typing import Annotated

import typer

from ops.commands.plan import Diff, From, OfflinePrices, Validate, given_pairs, make_plan
from ops.options import Context, Json, console, print_json


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
    import shlex
    import subprocess
    import sys

    from ops.account.deploy_command import cdk_words
    from ops.plan.render import show_plan
    from ops.usage import UsageError
    from training_cluster.paths import ROOT
    from training_cluster.stack_names import CLUSTER_STACK

    given = given_pairs(context, cluster)
    if not (yes or sys.stdin.isatty()):
        raise UsageError(
            "There is no terminal to ask on.\n  type:   trainctl deploy --yes, which does not ask"
        )
    found, pairs = make_plan(
        given, of=cluster, must_know=True, diff=diff, validate=validate, offline_prices=offline_prices
    )
    words = [*cdk_words([CLUSTER_STACK], pairs), *(("--require-approval", "never") if yes else ())]
    if as_json:
        print_json({"plan": found, "refused": found.refused, "deploy": words})
    else:
        show_plan(found, console())
        typer.echo(f"\n  runs:   {shlex.join(words)}")
    if found.refused or not (yes or typer.confirm("Deploy?", err=True)):
        raise typer.Exit(1)
    # The region and the profile of this command line are in the environment.
    shown = sys.stderr if as_json else None
    raise typer.Exit(subprocess.run(words, check=False, cwd=ROOT, stdout=shown).returncode)
