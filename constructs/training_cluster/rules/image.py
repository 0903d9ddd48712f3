"""Rules about the nodes' image and its content."""

import re
from collections.abc import Iterator

from training_cluster.catalog.families import load_base
from training_cluster.catalog.steps import budget_s, start_steps
from training_cluster.catalog.workloads import SYSTEM_PYTHONS, environments_budget_s, load_workloads
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction


def _rebuilds_are_of_a_built_image(settings: Settings) -> Iterator[Contradiction]:
    if settings.image_rebuild != "manual" and settings.node_image != "build":
        yield Contradiction(
            problem=f"image_rebuild={settings.image_rebuild} builds nothing with image={settings.node_image}",
            mend=f"-c image=build -c image_rebuild={settings.image_rebuild}, or leave image_rebuild out",
        )


def _image_builder_takes_the_tags(settings: Settings) -> Iterator[Contradiction]:
    # Its API's TagKey; other services take letters of all languages.
    keys = [key for key in settings.own_tags if not re.fullmatch(r"[a-zA-Z0-9\s_.:/=+\-@]*", key)]
    if keys and settings.node_image == "build":
        yield Contradiction(
            problem=f'image=build: Image Builder takes no tag with the key "{keys[0]}", only ASCII letters',
            mend="-c tags=... with another key, or -c image=official",
        )


def _workloads_suit_the_family(settings: Settings) -> Iterator[Contradiction]:
    family, known = settings.family_facts, load_workloads()
    for name in settings.node_workloads:
        if family.image_recipe not in known[name].recipes:
            yield Contradiction(
                problem=f"workloads={settings.workloads}: {name} has no environment for the recipe "
                f"{family.image_recipe} of {family.name}, only for {', '.join(known[name].recipes)}",
                mend=f"-c workloads={_without(settings, name)}",
            )


def _workloads_take_the_python(settings: Settings) -> Iterator[Contradiction]:
    for name in settings.node_workloads:
        workload = load_workloads()[name]
        if not workload.runs_on(settings.os_name):
            able = [f"-c os={each} (of a new cluster)" for each in SYSTEM_PYTHONS if workload.runs_on(each)]
            yield Contradiction(
                problem=f"workloads={settings.workloads}: {name} needs Python {', '.join(workload.pythons)}, "
                f"and os={settings.os_name} has {SYSTEM_PYTHONS[settings.os_name]}",
                mend=", or ".join([*able[:1], f"-c workloads={_without(settings, name)}"]),
            )


def _workloads_fit_the_start(settings: Settings) -> Iterator[Contradiction]:
    """Yield contradictions of the official image; the content of a custom image is unknown."""
    if settings.node_image != "official" or not settings.node_workloads:
        return
    known = load_workloads()
    said = f"image=official with workloads={settings.workloads}"
    for name in settings.node_workloads:
        if known[name].image_only or settings.family_facts.image_recipe in known[name].built_image:
            yield Contradiction(
                problem=f"{said}: the packages of {name} take too long to compile at a node's start",
                mend="-c image=build",
            )
    most, steps = load_base().compute_node.most_install_s, install_budget_s(settings)
    needed = environments_budget_s(settings.node_workloads)
    if steps + needed > most:
        yield Contradiction(
            problem=f"{said}: creating their environments may take {needed} s at each node's start, and of "
            f"the limit of {most} s the other steps leave {max(most - steps, 0)} s",
            mend="-c image=build, or leave workloads out: the first job makes what it needs",
        )


def install_budget_s(settings: Settings) -> int:
    """Return the most seconds of our steps at a node's start from the official image, without workloads."""
    return budget_s(start_steps(node="ComputeFleet", recipe=settings.family_facts.image_recipe))


def _without(settings: Settings, name: str) -> str:
    return ",".join(each for each in settings.node_workloads if each != name) or "none"


IMAGE_RULES = (
    _rebuilds_are_of_a_built_image,
    _image_builder_takes_the_tags,
    _workloads_suit_the_family,
    _workloads_take_the_python,
    _workloads_fit_the_start,
)
