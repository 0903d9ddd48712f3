"""Names of the stacks in CloudFormation, and the order in which the stacks are deployed."""

import json
import re

import aws_cdk as cdk

from stacks.composition import add_stacks
from tests.unit.assets.cluster_image.image_fakes import VERSION
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import (
    DEFAULT_CLUSTER,
    FORMER_DEFAULT,
    STACK_IDS,
    cluster_of_stack,
    destroy_command,
    is_taken,
)


def _stacks(**flags: str) -> list[cdk.Stack]:
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"])
    return add_stacks(app, read_settings(flags))


def test_every_stack_says_that_it_is_ours() -> None:
    stacks = _stacks(accounting="new", image="build")
    names = {each.node.id: each.stack_name for each in stacks}
    assert names == {
        **{id_: name for name, id_ in STACK_IDS.items()},
        "ImageStack": f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}",
        "TrainingClusterStack": "TrainingClusterStack",
    }
    assert set(STACK_IDS) == {f"TrainingCluster-{name}" for name in ("Network", "Storage", "Accounting")}
    for name in names.values():
        assert is_taken(name) and is_taken(name.lower()), name
    assert not is_taken(DEFAULT_CLUSTER)
    # CDK sees no import by name.
    needed = {each.node.id: {other.node.id for other in each.dependencies} for each in stacks}
    assert needed["TrainingClusterStack"] == names.keys() - {"TrainingClusterStack", "AccountingStack"}
    assert needed["ImageStack"] == {"NetworkStack", "StorageStack"}
    assert needed["StorageStack"] == needed["AccountingStack"] == {"NetworkStack"}


def test_another_cluster_is_another_stack_alone() -> None:
    assert [each.stack_name for each in _stacks(cluster_name="vision")] == [
        "TrainingCluster-Network",
        "TrainingCluster-Storage",
        "TrainingClusterStack-vision",
    ]
    assert cluster_of_stack("TrainingClusterStack-vision") == "vision"
    assert _stacks(cluster_name=FORMER_DEFAULT)[-1].stack_name == "TrainingClusterStack"
    assert cluster_of_stack("TrainingClusterStack") == DEFAULT_CLUSTER
    assert destroy_command(DEFAULT_CLUSTER) == "npx cdk destroy TrainingClusterStack"
    assert destroy_command("b") == "npx cdk destroy TrainingClusterStack -c cluster_name=b"


def test_no_message_destroys_the_default_cluster_instead() -> None:
    bare = re.compile(r"npx cdk destroy TrainingClusterStack\b(?! -c cluster_name=\{)")
    files = [
        each
        for folder in ("ops", "constructs")
        for each in (ROOT / folder).rglob("*")
        if each.suffix in (".py", ".yaml", ".sh")
    ]
    assert len(files) > 300
    # A sentence may be in two literals.
    texts = {each: re.sub(r'"\n\s*f?"', "", each.read_text()) for each in files}
    assert {each: lines for each, text in texts.items() if (lines := bare.findall(text))} == {}
