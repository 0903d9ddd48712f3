"""Tables of the bootstrap's steps, of jobs' variables and of attacks, in their pages."""

import re
from itertools import groupby

from ops.jobs.variables import variables_of_jobs
from rehearsal.people.attacks import ATTACKS
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


def render_attacks() -> str:
    """Render the table from rehearsal/people/attacks.tsv; attacks that the same refuses are one row."""
    rows = []
    for (before, now), group in groupby(ATTACKS.values(), key=lambda each: (each.before, each.now)):
        attacks = [*group]
        shown_by = ", ".join(dict.fromkeys(_shown_by(each.by) for each in attacks))
        rows.append(("; ".join(each.attack for each in attacks), before, now, shown_by))
    return table(("attack", "before", "now", "shown by"), rows)


def _shown_by(by: str) -> str:
    if by.startswith("tests/"):
        file = by.split("::", maxsplit=1)[0]
        return f"[{file.rpartition('/')[2].removesuffix('.py')}](../{file})"
    return f"`trainctl verify` alone: {by.split()[1]}" if by.startswith("verify ") else "the rehearsal"


TABLES = {
    "steps": (ASSETS / "bootstrap" / "README.md", render_steps),
    "attacks": (ROOT / "docs" / "security.md", render_attacks),
    "variables": (ROOT / "docs" / "workloads.md", render_variables),
}
"""Page and renderer of each table, by the name in its marks."""


def main() -> None:
    """Write each table between its marks."""
    for name, (page, render) in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = page.read_text().split(begin)
        page.write_text(f"{before}{begin}{render()}{end}{rest.split(end)[1]}")
