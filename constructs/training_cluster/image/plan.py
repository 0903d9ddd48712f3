"""Pure: what an image would hold, what building it takes, and what nodes that start from it still do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from training_cluster.catalog.families import family_names, instance_hour, load_base, load_family
from training_cluster.catalog.image_recipe import ImageRecipe
from training_cluster.catalog.prices import Price
from training_cluster.catalog.steps import Step, budget_s, image_steps, start_steps
from training_cluster.catalog.versions import Pin, capabilities, load_versions
from training_cluster.catalog.workloads import TRAINING, Workload, load_workloads
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter, image_stack_name, image_tags, parent_name

AROUND_MIN = 45
"""Minutes at worst of what is not ours: starts of two instances, the snapshot, the copy. An estimate."""


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """One image, before anything is built."""

    recipe_name: str
    recipe: ImageRecipe
    os: str
    families: tuple[str, ...]
    """All that take it."""
    stack_name: str
    parent_name: str
    parameter: str
    tags: dict[str, str]
    steps: tuple[Step, ...]
    """In the order in which the build runs them."""
    workloads: tuple[Workload, ...]
    """Whose environments are made."""
    packages: dict[str, tuple[str, ...]]
    """Of each of them, as pip has them pinned."""
    pins: dict[str, Pin]
    compute_capabilities: tuple[str, ...]
    """That compiled parts are for; none without NVIDIA's GPUs."""
    start_steps: tuple[Step, ...]
    """What is left for a node's start."""
    hour: Price | None
    """Of the instance that builds."""

    def step_budget_s(self, step: Step) -> int:
        """Seconds that a step may take: of the workloads' no more than their environments may."""
        if not step.makes_environments:
            return step.budget_s
        return min(step.budget_s, sum(each.budget_s for each in self.workloads))

    @property
    def budget_s(self) -> int:
        """Seconds that all steps may take together."""
        return sum(self.step_budget_s(step) for step in self.steps)

    @property
    def most_min(self) -> int:
        """Minutes after which a build has failed or is done."""
        return AROUND_MIN + math.ceil(self.budget_s / 60)

    @property
    def start_budget_s(self) -> int:
        """Seconds that our steps may still take at a node's start."""
        return budget_s(list(self.start_steps))

    def usd(self, minutes: int) -> float | None:
        """What a build of so many minutes costs; its disk and what is downloaded apart."""
        return None if self.hour is None else self.hour.usd * minutes / 60


def image_plan(settings: Settings) -> ImagePlan:
    """What ImageStack would build for these flags, whatever `image` is."""
    settings = settings.model_copy(update={"image": "build"})
    name, base = settings.family_facts.image_recipe, load_base()
    versions, recipe = load_versions(), base.image_recipes[name]
    known = load_workloads()
    return ImagePlan(
        recipe_name=name,
        recipe=recipe,
        os=settings.os_name,
        families=tuple(each for each in family_names() if load_family(each).image_recipe == name),
        stack_name=image_stack_name(settings),
        parent_name=parent_name(settings),
        parameter=image_parameter(settings),
        tags=image_tags(settings),
        steps=tuple(image_steps(name)),
        workloads=tuple(known[each] for each in settings.node_workloads),
        packages={each: _packages(TRAINING / each) for each in settings.node_workloads},
        pins=versions.of_recipe(name),
        compute_capabilities=tuple(capabilities(name)),
        start_steps=tuple(start_steps(node="ComputeFleet", recipe=name, has_built_image=True)),
        hour=instance_hour(recipe.build_instance_type),
    )


def _packages(workload: Path) -> tuple[str, ...]:
    lines = (line.strip() for line in (workload / "requirements.txt").read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "-")))
