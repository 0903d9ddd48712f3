"""Lists of mutants name the present code."""

from pathlib import Path

import pytest

from tools import witnesses
from training_cluster.paths import ROOT


@pytest.mark.parametrize("file", sorted((ROOT / "tests/mutants").glob("*.tsv")), ids=lambda file: file.stem)
def test_each_listed_mutant_and_test_exists(file: Path) -> None:
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    found = {each.name for path in {line[0] for line in lines} for each in witnesses.mutants(Path(path))}
    assert {tuple(line[:-1]) for line in lines} <= found
    for test in {line[-1] for line in lines if line[-1].startswith("tests/")}:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(), test
