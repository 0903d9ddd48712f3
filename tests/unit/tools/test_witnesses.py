"""Lists of mutants name the present code."""

from pathlib import Path

from tools import witnesses
from training_cluster.paths import ROOT


def test_each_listed_mutant_exists() -> None:
    for file in (ROOT / "tests/mutants").glob("*.tsv"):
        lines = [line.split("\t")[:-1] for line in file.read_text().splitlines()]
        found = {each.name for path in {line[0] for line in lines} for each in witnesses.mutants(Path(path))}
        assert {tuple(line) for line in lines} <= found, file.name
