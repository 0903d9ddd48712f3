"""Variables of jobs: those of every job, from variables.tsv, and those that a workload's README lists."""

import re
from dataclasses import dataclass
from pathlib import Path

from training_cluster.paths import TRAINING

_ROW = re.compile(r"^\| *([A-Z][A-Z0-9_]*(?:, *[A-Z][A-Z0-9_]*)*) *\|", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable that job.slurm, or the parts that all workloads share, read."""

    name: str
    allowed: str
    """Words; `N..` for whole numbers of N or more; empty for any value."""
    default: str
    meaning: str


def variables_of_jobs(training: Path = TRAINING) -> list[Variable]:
    """Return the variables that every job reads; none if the folder has no table of them."""
    table = training / "variables.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()[1:] if table.is_file() else []
    cells = (["" if cell == "-" else cell for cell in line.split("\t")] for line in lines)
    return [Variable(name=name, allowed=a, default=d, meaning=m) for name, a, d, m in cells]


def variables_of_readme(folder: Path) -> list[str]:
    """Return the names in the table `Settings` of a workload's README, such as those of its preparation."""
    readme = folder / "README.md"
    if not readme.is_file():
        return []
    table = readme.read_text(encoding="utf-8").partition("\n## Settings\n")[2].partition("\n## ")[0]
    return [name.strip() for row in _ROW.findall(table.replace("`", "")) for name in row.split(",")]
