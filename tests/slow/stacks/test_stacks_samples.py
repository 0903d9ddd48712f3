"""Every sample of overrides and imports, deployed once: no right lacks, and none is for an unused type."""

from collections.abc import Iterator

import pytest

from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.validation.cases import OS_NAMES, Case, all_cases
from tests.slow.conftest import Cloud
from training_cluster.permissions.overrides import MANAGED_TYPES, managed_types

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def _samples() -> dict[str, Case]:
    """Return the samples by name; those of overrides with the first OS."""
    cases = [each for each in all_cases() if each.row.startswith(("overrides: ", "import: "))]
    return {each.row: each for each in reversed(cases) if each.os_name == OS_NAMES[0] or "import" in each.row}


SAMPLES = _samples()


def _types(cloud: Cloud, stack: str) -> Iterator[str]:
    """Yield the resource types of a stack and its nested stacks."""
    answer = cloud.client("cloudformation").describe_stack_resources(StackName=stack)
    for each in answer["StackResources"]:
        yield each["ResourceType"]
        if each["ResourceType"] == "AWS::CloudFormation::Stack":
            yield from _types(cloud, each["PhysicalResourceId"])


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_deploys_with_its_rights(sample: str, cloud: Cloud) -> None:
    before = len(denied_calls(cloud.address))
    flags = [f"{name}={value}" for name, value in SAMPLES[sample].flags.items() if name != "cluster_name"]
    cloud.deploy(*flags)
    assert denied_calls(cloud.address)[before:] == []
    config = read_deployed_cluster(cloud.address, "training").config
    assert MANAGED_TYPES & {*_types(cloud, "training")} == managed_types(config)
    cloud.destroy(*flags)
