"""`python -m tools.docs.variables_table`: the table of every job's variables in docs/workloads.md."""

from ops.jobs.variables import variables_of_jobs
from training_cluster.paths import ROOT

PAGE = ROOT / "docs" / "workloads.md"
_BEGIN, _END = "<!-- variables: begin -->\n", "<!-- variables: end -->\n"


def render() -> str:
    """Render the table from assets/training/variables.tsv."""
    lines = ["| variable | allowed | default | meaning |", "|---|---|---|---|"]
    for each in variables_of_jobs():
        words = each.allowed
        allowed = f"{words[:-2]} or more" if words.endswith("..") else ", ".join(words.split())
        lines.append(f"| `{each.name}` | {allowed} | {each.default} | {each.meaning} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table between its marks."""
    before, rest = PAGE.read_text().split(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}{render()}{_END}{rest.split(_END)[1]}")


if __name__ == "__main__":
    main()
