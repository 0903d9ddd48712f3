"""Pure plan of an image: its content, the cost of its build, and the steps left for a node's start."""

import math
from dataclasses import dataclass
from pathlib import Path

from training_cluster.catalog.families import family_names, instance_hour, load_base, load_family
from training_cluster.catalog.family import ImageRecipe
from training_cluster.catalog.prices import Price
from training_cluster.catalog.steps import Step, budget_s, image_steps, start_steps
from training_cluster.catalog.versions import Pin, capabilities, load_versions
from training_cluster.catalog.workloads import TRAINING, Workload, load_workloads
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter, image_stack_name, image_tags, parent_name

AROUND_MIN = 45
"""Most minutes in addition to our steps: starts of two instances, the snapshot, the copy. An estimate."""


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """Plan of one image, before anything is built."""

    recipe_name: str
    recipe: ImageRecipe
    os: str
    families: tuple[str, ...]
    """Families whose nodes use the image."""
    stack_name: str
    parent_name: str
    parameter: str
    tags: dict[str, str]
    steps: tuple[Step, ...]
    """Steps in the order in which the build runs them."""
    workloads: tuple[Workload, ...]
    """Workloads whose environments the image has."""
    packages: dict[str, tuple[str, ...]]
    """Pinned packages by workload, in pip's format."""
    pins: dict[str, Pin]
    compute_capabilities: tuple[str, ...]
    """Targets of compiled parts; none without NVIDIA's GPUs."""
    start_steps: tuple[Step, ...]
    """Steps left for a node's start."""
    hour: Price | None
    """Price of an hour of the instance that builds."""

    def step_budget_s(self, step: Step) -> int:
        """Return the most seconds for a step; for the environments, at most the workloads' budgets."""
        if not step.makes_environments:
            return step.budget_s
        return min(step.budget_s, sum(each.budget_s for each in self.workloads))

    @property
    def budget_s(self) -> int:
        """Most seconds for all steps together."""
        return sum(self.step_budget_s(step) for step in self.steps)

    @property
    def most_min(self) -> int:
        """Most minutes of a build, after which it is done or has failed."""
        return AROUND_MIN + math.ceil(self.budget_s / 60)

    @property
    def start_budget_s(self) -> int:
        """Most seconds for our steps at a node's start."""
        return budget_s(list(self.start_steps))

    def usd(self, minutes: int) -> float | None:
        """Return the cost of the instance for a build of so many minutes; None without its price."""
        return None if self.hour is None else self.hour.usd * minutes / 60


def image_plan(settings: Settings) -> ImagePlan:
    """Return the plan of the image that ImageStack would build for these flags, whatever `image` is."""
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
