"""YAML files of users: types as Slurm and ParallelCluster mean them, and problems with their lines."""

import sys
from functools import partial
from pathlib import Path

import pytest

from training_cluster.user_yaml import UserYamlError, read_user_yaml


def test_times_are_text_and_problems_have_lines(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(1000)  # libraries of other tests raise it
    file = tmp_path / "file.yaml"
    file.write_text("key: [12:00:00, 1-00:00:00, 2026-11-22, 12, 0x1f, 1.5, yes, null]")
    values = ["12:00:00", "1-00:00:00", "2026-11-22", 12, 31, 1.5, True, None]
    assert read_user_yaml(file) == {"key": values}
    # Other problems: overrides/test_file.py.
    for text, problem in (
        ("- {Name: x}\n- {Name: x}", "line 2: the Name x is on line 1 already"),
        ("a: [", "line 1"),
        ("[" * 3000, "nested too deeply"),
    ):
        file.write_text(text)
        with pytest.raises(UserYamlError) as raised:
            read_user_yaml(file)
        assert any(problem in each for each in raised.value.problems)
    with pytest.raises(UserYamlError, match="not the name of a file"):
        read_user_yaml(tmp_path / "a\0b")
