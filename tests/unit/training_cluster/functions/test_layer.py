"""The provider's Lambda layer: which one, what it is made from, what a person reads when it is not there."""

import re
import zipfile
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions.built_layer import (
    ARCHITECTURE,
    PYTHON,
    archive_path,
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
