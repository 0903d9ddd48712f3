"""Lists of mutants name the present code."""

from pathlib import Path

import pytest

from tools import witnesses
from tools.shell_mutants import shell_faults
from training_cluster.paths import ROOT

SOURCE = """def step(state):
    print(state)
    if state == "done":
        save(state)
        return state
    return False
"""


def texts(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> dict[tuple[str, ...], str]:
    monkeypatch.setattr(witnesses, "ROOT", folder)
    (folder / "x.py").write_text(source)
    return {each.name[1:]: each.text.decode() for each in witnesses.mutants(Path("x.py"))}


def test_each_kind_of_fault_is_planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = texts(monkeypatch, tmp_path, SOURCE)
    faults = {
        ("negate", 'state == "done"'): ('if state == "done"', 'if not (state == "done")'),
        ("compare", 'state == "done"'): ('if state == "done"', 'if (not (state == "done"))'),
        ("no call", "save(state)"): ("save(state)", "None"),
        ("return None", "state"): ("return state", "return None"),
        ("flip", "False"): ("False", "True"),
    }
    assert found == {("step", *name, "1"): SOURCE.replace(*edit) for name, edit in faults.items()}


SHELL = """step() {
  if [[ $1 == done ]]; then save "$1"; fi
  load "$1" |
    sort
  sort "$1"
}
"""


def test_each_kind_of_fault_of_shell_is_planted() -> None:
    found = {(fault, source): text for _, fault, source, text in shell_faults(SHELL)}
    assert found == {
        ("negate", "[[ $1 == done ]]"): SHELL.replace("[[ $1 == done ]]", "! { [[ $1 == done ]]; }"),
        ("drop", 'sort "$1"'): SHELL.replace('sort "$1"', ":"),
    }


def test_names_survive_edits_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = texts(monkeypatch, tmp_path, SOURCE).keys()
    assert texts(monkeypatch, tmp_path, f"import json\n\n\n{SOURCE}").keys() == before


def test_each_listed_mutant_exists() -> None:
    for file in (ROOT / "tests/mutants").glob("*.tsv"):
        lines = [line.split("\t")[:-1] for line in file.read_text().splitlines()]
        found = {each.name for path in {line[0] for line in lines} for each in witnesses.mutants(Path(path))}
        assert {tuple(line) for line in lines} <= found, file.name
