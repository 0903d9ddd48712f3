"""YAML files of users: types as Slurm and ParallelCluster mean them, and problems with their lines."""

from pathlib import Path

import pytest

from training_cluster.user_yaml import UserYamlError, read_user_yaml


def _read(folder: Path, text: str) -> object:
    file = folder / "file.yaml"
    file.write_text(text)
    return read_user_yaml(file)


def test_times_and_dates_are_text(tmp_path: Path) -> None:
    text = "[12:00:00, 1-00:00:00, 2026-11-22, 12, 0x1f, 1.5, yes, null]"
    values = ["12:00:00", "1-00:00:00", "2026-11-22", 12, 31, 1.5, True, None]
    assert _read(tmp_path, f"key: {text}") == {"key": values}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("a: 1\na: 2", "line 2: the key a is on line 1 already"),
        ("- {Name: x}\n- {Name: x}", "line 2: the Name x is on line 1 already"),
        ("a: [", "line 1"),
        ("a: &a [*a]", "a value that contains itself"),
    ],
)
def test_a_problem_has_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UserYamlError) as raised:
        _read(tmp_path, text)
    assert any(problem in each for each in raised.value.problems)
