"""The flags that a cluster was deployed with stand in the templates, where `trainctl plan` finds them."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from ops.account.deployed_flags import guarded_values
from ops.plan.deployed import Deployed, DeployedStack
from ops.plan.flags import former_settings
from tests.unit.ops.plan.test_plan import templates_of
from training_cluster.flags.given import GIVEN_FLAGS, given_flags, read_given_flags
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import STACK_IDS

Synthesise = Callable[..., dict[str, Template]]
_NAMES = {id_: name for name, id_ in STACK_IDS.items()}
FLAGS = {"family": "p5", "nodes": "4", "endpoints": "private", "fsx_gib": "2400", "home": "efs"}


def _deployed(templates: Mapping[str, Mapping[str, Any]]) -> Deployed:
    stacks = {name: DeployedStack(id=name, outputs={}, template=each) for name, each in templates.items()}
    return Deployed(region="us-east-1", stacks=stacks, cluster_stack=stacks["TrainingClusterStack"])


@pytest.mark.slow
@pytest.mark.parametrize("flags", [{}, FLAGS], ids=["defaults", "flags"])
def test_fake_templates_agree_with_the_real_ones(flags: dict[str, str], synthesise: Synthesise) -> None:
    settings = read_settings(flags)
    real = _deployed({_NAMES.get(id_, id_): each.to_json() for id_, each in synthesise(**flags).items()})
    made = _deployed(templates_of(settings))
    network = {"private_subnet_id", "security_group_id"}  # of StorageStack's guard: known at deploy only
    expected = {k: v for k, v in guarded_values(made.templates).items() if k not in network}
    assert {k: v for k, v in guarded_values(real.templates).items() if k not in network} == expected
    before, why = former_settings(settings, real)
    assert (before, why) == (settings, "")


def test_a_template_without_them_is_an_older_releases() -> None:
    assert read_given_flags({"Resources": {}}) is None
    templates = templates_of(read_settings({}))
    del templates["TrainingClusterStack"]["Metadata"]
    before, why = former_settings(read_settings({}), _deployed(templates))
    assert before is None
    assert "did not record flags" in why


def test_flags_unknown_to_this_release_are_not_guessed() -> None:
    templates = templates_of(read_settings({}))
    templates["TrainingClusterStack"]["Metadata"][GIVEN_FLAGS]["gone"] = "1"
    before, why = former_settings(read_settings({}), _deployed(templates))
    assert before is None
    assert why.startswith("this release of the app refuses the flags of the last deploy")


def test_only_what_differs_is_written_down() -> None:
    assert given_flags(read_settings({})) == {"family": "p4d"}
    assert given_flags(read_settings({"nodes": "4", "on_busy": "stop"})) == {"family": "p4d", "nodes": 4}
