"""The subcommand `trainctl image-plan`."""

from typing import Annotated

import typer

from ops.options import Context, Json, print_json


def image_plan(
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="Instance family (docs/families.md).")],
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Show how image=build builds a family's image: steps, versions and their sources, time and cost.

    Makes no AWS call.
    """
    from ops.context import read_context
    from ops.image_plan import render_image_plan
    from training_cluster.image import plan
    from training_cluster.rules.context import read_settings

    flags = {**read_context(context or []), "image": "build", "family": family}
    found = plan.image_plan(read_settings(flags))
    if as_json:
        return print_json({**vars(found), "budget_s": found.budget_s, "most_min": found.most_min})
    return typer.echo(render_image_plan(found))
