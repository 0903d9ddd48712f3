"""The subcommand `trainctl destroy --plan`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def destroy(
    plan: Annotated[bool, typer.Option("--plan", help="Required: this command only shows the plan.")] = False,
    *,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Show what cdk destroy deletes and keeps, what the rest costs and how to delete it. Deletes nothing."""
    from dataclasses import replace

    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.teardown.plan import read_plan, render_plan
    from ops.usage import UsageError
    from training_cluster.stack_names import destroy_command

    if not plan:
        raise UsageError(
            "destroy: trainctl deletes nothing; cdk does.\n"
            f"  type:   trainctl destroy --plan --cluster {cluster}    shows what goes and what remains\n"
            f"          {destroy_command(cluster)}"
        )
    found = read_plan(cluster, account_clients())
    if as_json:
        steps = (replace(step, commands=tuple(map(with_account, step.commands))) for step in found.steps)
        return print_json(replace(found, steps=tuple(steps)))
    return typer.echo(with_account("\n".join(render_plan(found))))
