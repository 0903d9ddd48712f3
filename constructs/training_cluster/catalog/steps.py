"""Reader of the bootstrap's steps and of their headers (assets/bootstrap/README.md). It imports no CDK."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from training_cluster.paths import ASSETS
from training_cluster.problems import ConfigurationError

Moment = Literal["install", "image", "start"]
NODES = ("HeadNode", "ComputeFleet", "LoginNode")
RECIPES = ("gpu", "volta", "neuron", "cpu")
METRICS = ("cloudwatch", "prometheus", "amp")
"""Stores of a cluster's metrics: values of the flag `metrics`, the default first."""

_LINE = re.compile(r"^# ([A-Z]\w+): (.+)$")
_NAMES = ("Moment", "Recipes", "Nodes", "Where", "Required", "Budget", "Metrics", "Reads")
_ALLOWED = {
    "Moment": re.compile(r"install|image|start"),
    "Recipes": re.compile(rf"all|({'|'.join(RECIPES)})( ({'|'.join(RECIPES)}))*"),
    "Nodes": re.compile(rf"all|({'|'.join(NODES)})( ({'|'.join(NODES)}))*"),
    "Where": re.compile(r"any|node"),
    "Required": re.compile(r"yes|no"),
    "Budget": re.compile(r"[1-9]\d* s"),
}
_DEFAULTS = {"Recipes": "all", "Nodes": "all", "Where": "node", "Required": "yes"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: its nodes, its moment, its budget."""

    path: Path
    moment: Moment
    recipes: frozenset[str]
    nodes: frozenset[str]
    is_for_nodes_only: bool
    """True when only a node of ParallelCluster can run it: a rehearsal skips the step."""
    is_required: bool
    budget_s: int
    metrics: frozenset[str]
    """Values of the flag `metrics` with which it runs."""
    reads: tuple[str, ...]
    """Patterns of the other files of the bundle that it reads."""

    @property
    def name(self) -> str:
        """Name in logs, such as 20-install-python."""
        return self.path.stem

    @property
    def makes_environments(self) -> bool:
        """True for the step that makes the workloads' Python environments."""
        return "training/*/requirements.txt" in self.reads

    @property
    def text(self) -> str:
        """Text of the script."""
        return self.path.read_text()


@cache
def load_steps(assets: Path = ASSETS) -> tuple[Step, ...]:
    """Read all steps, in the order in which they run.

    Raises:
        ConfigurationError: a header lacks a line, or has one of an unknown form.
    """
    return tuple(_read(path) for path in sorted((assets / "bootstrap" / "steps").glob("*.sh")))


def image_steps(recipe: str, assets: Path = ASSETS) -> list[Step]:
    """Read the steps that an image build runs."""
    return [
        step
        for step in load_steps(assets)
        if step.moment != "start" and recipe in step.recipes and "ComputeFleet" in step.nodes
    ]


def start_steps(
    *, node: str, recipe: str, metrics: str = METRICS[0], has_built_image: bool = False
) -> list[Step]:
    """Read the steps that a node may run at its start: with a built image, those that no image can hold."""
    moments = {"start"} if has_built_image else {"start", "install"}
    return [
        step
        for step in load_steps()
        if step.moment in moments
        and recipe in step.recipes
        and node in step.nodes
        and metrics in step.metrics
    ]


def budget_s(steps: list[Step], *, environments_s: int = 0) -> int:
    """Return the most seconds that these steps may take together at a node's start.

    Args:
        environments_s: seconds for the environments of the node's workloads. The step that makes them states
            the budget of an image build.
    """
    return sum(environments_s if step.makes_environments else step.budget_s for step in steps)


def _read(path: Path) -> Step:
    found = _DEFAULTS | {"Moment": "start" if path.name >= "6" else "install"}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        if stated := _LINE.match(line):
            if stated[1] not in _NAMES:
                raise ConfigurationError(
                    f"{path.name}: its header has a line `# {stated[1]}:`\n    allowed: {', '.join(_NAMES)}"
                )
            found[stated[1]] = stated[2]
    for name, allowed in _ALLOWED.items():
        if not allowed.fullmatch(found.get(name, "")):
            raise ConfigurationError(
                f"{path.name}: its header has no line `# {name}: ...` that fits {allowed.pattern}"
            )
    moment: Moment = found["Moment"]  # type: ignore[assignment]  # matched above
    return Step(
        path=path,
        moment=moment,
        recipes=frozenset(RECIPES if found["Recipes"] == "all" else found["Recipes"].split()),
        nodes=frozenset(NODES if found["Nodes"] == "all" else found["Nodes"].split()),
        is_for_nodes_only=found["Where"] == "node",
        is_required=found["Required"] == "yes",
        budget_s=int(found["Budget"].split()[0]),
        metrics=frozenset(found.get("Metrics", " ".join(METRICS)).split()),
        reads=tuple(found.get("Reads", "").split()),
    )
