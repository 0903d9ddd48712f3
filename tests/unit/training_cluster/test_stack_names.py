"""Names of the stacks in CloudFormation: they say whose they are, and the CDK's ids stay what people type."""

import json
import re

import aws_cdk as cdk
import pytest

from stacks.composition import add_stacks
from tests.unit.assets.cluster_image.image_fakes import VERSION
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import STACK_IDS, cluster_of_stack, destroy_command, is_taken


def _names(**flags: str) -> dict[str, str]:
    """Return the names in CloudFormation, by id."""
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"])
    return {each.node.id: each.stack_name for each in add_stacks(app, read_settings(flags))}


def test_every_stack_says_in_its_name_that_it_is_ours() -> None:
    assert _names(accounting="new", image="build") == {
        "NetworkStack": "TrainingCluster-Network",
        "StorageStack": "TrainingCluster-Storage",
        "AccountingStack": "TrainingCluster-Accounting",
        "ImageStack": f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}",
        "TrainingClusterStack": "TrainingClusterStack",
    }


def test_another_cluster_is_another_stack_on_the_same_shared_ones() -> None:
    default, other = _names(accounting="new"), _names(accounting="new", cluster_name="vision")
    assert other == {**default, "TrainingClusterStack": "TrainingClusterStack-vision"}
    assert [cluster_of_stack(names["TrainingClusterStack"]) for names in (default, other)] == [
        "training",
        "vision",
    ]


def test_the_table_of_ids_is_what_the_app_has() -> None:
    names = _names(accounting="new")
    assert {name: id_ for id_, name in names.items() if id_ != "TrainingClusterStack"} == STACK_IDS


@pytest.mark.slow
@pytest.mark.parametrize("flags", [{}, {"cluster_name": "vision"}, {"image": "build"}, {"accounting": "new"}])
def test_no_cluster_can_have_the_name_of_a_stack(flags: dict[str, str]) -> None:
    for name in _names(**flags).values():
        assert is_taken(name) and is_taken(name.lower()), name
    assert not is_taken("training")


def test_the_command_of_the_default_cluster_is_short_and_names_every_other_one() -> None:
    assert destroy_command("training") == "npx cdk destroy TrainingClusterStack"
    assert destroy_command("b") == "npx cdk destroy TrainingClusterStack -c cluster_name=b"


def test_no_message_sends_the_user_of_another_cluster_to_the_default_one() -> None:
    bare = re.compile(r"npx cdk destroy TrainingClusterStack\b(?! -c cluster_name=\{)")
    files = [
        each
        for folder in ("ops", "constructs")
        for each in (ROOT / folder).rglob("*")
        if each.suffix in (".py", ".yaml", ".sh")
    ]
    assert len(files) > 300
    found = {}
    for each in files:
        text = re.sub(r'"\n\s*f?"', "", each.read_text())  # a sentence in two literals
        if lines := bare.findall(text):
            found[str(each.relative_to(ROOT))] = lines
    assert not found
