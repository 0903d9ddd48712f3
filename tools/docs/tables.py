"""Tables of the bootstrap's steps and of jobs' variables, in their pages."""

import re

from ops.jobs.variables import variables_of_jobs
from tools.docs.table import table
from training_cluster.catalog.steps import NODES, RECIPES, Step, load_steps
from training_cluster.paths import ASSETS, ROOT

_STEP = ("step", "when", "recipes", "nodes", "where", "required", "most", "what")


def purpose(step: Step) -> str:
    """Return the first sentence of a step's header."""
    text = step.text.split("\n#\n", 1)[1]
    lines = []
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# "))
    return re.split(r"(?<=[.:])\s", " ".join(lines) + " ", maxsplit=1)[0].rstrip(".:")


def _names(chosen: frozenset[str], every: tuple[str, ...]) -> str:
    return "all" if len(chosen) == len(every) else ", ".join(name for name in every if name in chosen)


def render_steps() -> str:
    """Render the table from the steps' own headers."""
    rows = [
        (
            step.name,
            step.moment,
            _names(step.recipes, RECIPES),
            _names(step.nodes, NODES),
            "nodes alone" if step.is_for_nodes_only else "any machine",
            "yes" if step.is_required else "no",
            f"{step.budget_s} s",
            purpose(step),
        )
        for step in load_steps()
    ]
    return table(_STEP, rows)


def render_variables() -> str:
    """Render the table from assets/training/variables.tsv."""
    rows = (
        (f"`{each.name}`", _allowed(each.allowed), each.default, each.meaning) for each in variables_of_jobs()
    )
    return table(("variable", "allowed", "default", "meaning"), rows)


def _allowed(words: str) -> str:
    return f"{words[:-2]} or more" if words.endswith("..") else ", ".join(words.split())


TABLES = {
    "steps": (ASSETS / "bootstrap" / "README.md", render_steps),
    "variables": (ROOT / "docs" / "workloads.md", render_variables),
}
"""Page and renderer of each table, by the name in its marks."""


def main() -> None:
    """Write each table between its marks."""
    for name, (page, render) in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = page.read_text().split(begin)
        page.write_text(f"{before}{begin}{render()}{end}{rest.split(end)[1]}")
