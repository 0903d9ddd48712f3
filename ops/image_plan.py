"""The text of `trainctl image-plan`: an image's content, the steps of its build, time and cost."""

from collections.abc import Iterable, Iterator

from ops.printable import aligned
from training_cluster.catalog.versions import Pin
from training_cluster.image.plan import ImagePlan


def render_image_plan(plan: ImagePlan) -> str:
    """Render a plan as the lines of a terminal."""
    return "\n".join(
        [
            f"Image of recipe {plan.recipe_name} for {plan.os}: {plan.recipe.description}",
            "",
            *_rows(_facts(plan)),
            "",
            f"Steps of the build, in their order ({plan.budget_s} s at most):",
            *_rows(
                (step.name, step.moment, f"{plan.step_budget_s(step)} s", _need(step.is_required))
                for step in plan.steps
            ),
            "",
            "Versions (cluster_configs/versions.yaml):",
            *_rows((name, pin.version, _source(pin)) for name, pin in plan.pins.items()),
            *_environments(plan),
            "",
            f"Steps that remain for a node's start, {plan.start_budget_s} s at most:",
            *_rows((step.name, step.moment, f"{step.budget_s} s") for step in plan.start_steps),
        ]
    )


def _rows(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    return aligned([*rows], indent="  ")


def _facts(plan: ImagePlan) -> Iterator[tuple[str, str]]:
    recipe = plan.recipe
    yield "families", ", ".join(plan.families)
    yield "stack", plan.stack_name
    yield "parent", f"{plan.parent_name}*, AWS's newest when it is deployed first"
    yield "built on", f"{recipe.build_instance_type}, which has no GPU; root {recipe.root_gib} GiB, encrypted"
    if plan.compute_capabilities:
        yield "compiled for", f"compute capability {', '.join(plan.compute_capabilities)}"
    yield "takes", f"about {recipe.usual_min} minutes (estimate), {plan.most_min} at most (budgets)"
    usual, most = plan.usd(recipe.usual_min), plan.usd(plan.most_min)
    if plan.hour and usual is not None and most is not None:
        price = f"{plan.hour.usd:g} USD an hour, us-east-1, {plan.hour.date}"
        yield "costs", f"about {usual:.2f} USD, {most:.2f} at most ({price}), and the snapshot each month"
    yield "workloads", ", ".join(f"{each.name} ({each.budget_s} s)" for each in plan.workloads) or "none"
    yield "parameter", plan.parameter
    for key, value in plan.tags.items():
        yield "tag", f"{key}={value}"


def _environments(plan: ImagePlan) -> Iterator[str]:
    for name, packages in plan.packages.items():
        yield ""
        yield f"Packages of {name} (assets/training/{name}/requirements.txt):"
        yield from (f"  {package}" for package in packages)


def _need(is_required: bool) -> str:
    return "required" if is_required else "optional"


def _source(pin: Pin) -> str:
    return pin.source if pin.confirmed else f"{pin.source} (unconfirmed)"
