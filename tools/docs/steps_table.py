"""`python -m tools.docs.steps_table`: the table of steps in assets/bootstrap/README.md."""

import re

from training_cluster.catalog.steps import NODES, RECIPES, Step, load_steps
from training_cluster.paths import ASSETS

README = ASSETS / "bootstrap" / "README.md"
_BEGIN, _END = "<!-- steps: begin -->\n", "<!-- steps: end -->\n"
_HEAD = """\
| step | when | recipes | nodes | where | required | most | what |
|---|---|---|---|---|---|---|---|
"""


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


def render() -> str:
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
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Write the table between its marks."""
    text = README.read_text()
    before, rest = text.split(_BEGIN)
    README.write_text(f"{before}{_BEGIN}{render()}{_END}{rest.split(_END)[1]}")


if __name__ == "__main__":
    main()
