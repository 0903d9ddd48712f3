"""A file of flags for one cluster is read like a command line, which comes first."""

from pathlib import Path

import pytest

from ops.context import read_context
from training_cluster.advice.advice import advice
from training_cluster.paths import ROOT
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _file(folder: Path, *lines: str) -> str:
    file = folder / "prod.yaml"
    file.write_text("\n".join(lines))
    return str(file)


def test_values_are_read_like_typed_ones(tmp_path: Path) -> None:
    (tmp_path / "users.yaml").write_text("users: {ann: {uid: 5001}}")
    lines = ("family: p5", "public_access: off", "cpu_queue: on", "fsx_mbps_per_tib: 500", "budget_usd:")
    file = _file(tmp_path, *lines, "cluster_name: prod", "users: ./users.yaml", "key_name: null")
    settings = read_settings({"flags": file})
    assert (settings.family, settings.public_access, settings.cpu_queue) == ("p5", "off", "on")
    assert (settings.fsx_mbps_per_tib, settings.budget_usd, settings.key_name) == ("500", None, None)
    folder = tmp_path.relative_to(ROOT) if tmp_path.is_relative_to(ROOT) else tmp_path
    assert settings.users == str(folder / "users.yaml"), "beside the file of flags"
    assert read_context([f"flags={file}"], folder=tmp_path, home=tmp_path)["cluster_name"] == "prod"


def test_typed_flags_replace_the_files(tmp_path: Path) -> None:
    settings = read_settings({"flags": _file(tmp_path, "nodes: 16", "family: p5"), "nodes": "8"})
    assert (settings.nodes, settings.family) == (8, "p5")
    (note,) = (e.text for e in advice(settings, config_before_deploy(settings)) if e.id == "flags-file")
    assert note.startswith("nodes=8 of the command line or of cdk.json is used, not 16 of ")


def test_wrong_flags_are_named_with_their_lines(tmp_path: Path) -> None:
    lines = ("# prod", "node: 16", "nodes: many", "tags: {a: b}", "users: [a]", "flags: b.yaml", "x: 1")
    with pytest.raises(ConfigurationError) as refused:
        read_settings({"flags": _file(tmp_path, *lines)})
    said = str(refused.value)
    assert 'line 2: node: no such key. Did you mean "nodes"?' in said
    assert "line 3: nodes: many: not allowed\n    allowed: a whole number from 1 to 4096" in said
    for line in (
        "line 4: tags: ",
        "line 5: users: ",
        "line 6: flags: a file of flags names no",
        "line 7: x:",
    ):
        assert line in said


def test_files_without_flags_are_refused(tmp_path: Path) -> None:
    for lines in (["- nodes"], [""], ["nodes: 2", "nodes: 3"]):
        with pytest.raises(ConfigurationError, match=r"prod\.yaml cannot be used"):
            read_settings({"flags": _file(tmp_path, *lines)})
    with pytest.raises(ConfigurationError, match="No such file"):
        read_settings({"flags": str(tmp_path / "other.yaml")})
