"""Reader of the workloads' environments in assets/training/: their nodes and their budgets."""

import re
from dataclasses import dataclass
from pathlib import Path

from training_cluster.catalog.steps import RECIPES
from training_cluster.paths import ASSETS
from training_cluster.problems import ConfigurationError

TRAINING = ASSETS / "training"
# Lines of the header of requirements.txt and install.sh.
_LINE = re.compile(r"^# (Budget|Recipes|Moment|Image|Pythons): (.+)$")
# The distributions' own python3; on Amazon Linux 2023, whose python3 is 3.9, step 20 installs this package.
SYSTEM_PYTHONS = {"ubuntu2204": "3.10", "ubuntu2404": "3.12", "alinux2023": "3.12"}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One folder of assets/training/ with a requirements.txt."""

    name: str
    recipes: tuple[str, ...]
    """Image recipes of the nodes that it runs on."""
    budget_s: int
    """Most seconds for making its environment: downloads, and the compilation by install.sh."""
    image_only: bool
    """True when its install.sh runs in image builds only."""
    built_image: tuple[str, ...] = ()
    """Recipes on whose nodes it needs the compiled parts of an image build."""
    pythons: tuple[str, ...] = ()
    """Versions of Python that its packages take, such as 3.12; empty when they take all of SYSTEM_PYTHONS."""

    def runs_on(self, os_name: str) -> bool:
        """Return whether its packages take the Python of an operating system."""
        return not self.pythons or SYSTEM_PYTHONS[os_name] in self.pythons


def load_workloads(training: Path = TRAINING) -> dict[str, Workload]:
    """Read all workloads with an environment, by name.

    Raises:
        ConfigurationError: a header without budget or recipes, or with an unknown word.
    """
    files = sorted(training.glob("*/requirements.txt"))
    return {file.parent.name: _read(file) for file in files}


def workloads_of(recipe: str, os_name: str | None = None, training: Path = TRAINING) -> tuple[str, ...]:
    """Return the names of the workloads that nodes of an image recipe run, on an operating system or any."""
    known = {name: each for name, each in load_workloads(training).items() if recipe in each.recipes}
    return tuple(name for name, each in known.items() if os_name is None or each.runs_on(os_name))


def environments_budget_s(names: tuple[str, ...], training: Path = TRAINING) -> int:
    """Return the most seconds for making these workloads' environments, one after the other.

    Raises:
        ConfigurationError: there is no such workload.
    """
    known = load_workloads(training)
    if unknown := [name for name in names if name not in known]:
        raise ConfigurationError(
            f'there is no workload "{unknown[0]}" with an environment. Allowed: {", ".join(known) or "none"}'
        )
    return sum(known[name].budget_s for name in names)


def _read(requirements: Path) -> Workload:
    name = requirements.parent.name
    header = _header(requirements)
    install = requirements.with_name("install.sh")
    own = _header(install) if install.is_file() else {}
    recipes = tuple(header.get("Recipes", "").split())
    if recipes == ("all",):
        recipes = RECIPES
    if not recipes or (wrong := [recipe for recipe in recipes if recipe not in RECIPES]):
        said = f'"{wrong[0]}" is not a recipe' if recipes else "no line `# Recipes: gpu cpu`"
        raise ConfigurationError(
            f"assets/training/{name}/requirements.txt: {said} in its header. "
            f"Allowed: all, or of {', '.join(RECIPES)}"
        )
    budget = _seconds(requirements, header) + (_seconds(install, own) if install.is_file() else 0)
    return Workload(
        name=name,
        recipes=recipes,
        budget_s=budget,
        image_only=own.get("Moment") == "image",
        built_image=tuple(own.get("Image", "").split()),
        pythons=tuple(header.get("Pythons", "").split()),
    )


def _header(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in file.read_text().splitlines():
        if not line.startswith("#"):
            break
        if match := _LINE.match(line):
            found[match[1]] = match[2].strip()
    return found


def _seconds(file: Path, header: dict[str, str]) -> int:
    said = header.get("Budget", "")
    if not (match := re.fullmatch(r"(\d+) s", said)):
        raise ConfigurationError(
            f"assets/training/{file.parent.name}/{file.name}: its header states no budget; "
            "add `# Budget: 300 s`"
        )
    return int(match[1])
