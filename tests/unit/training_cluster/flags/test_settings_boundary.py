"""A permissions boundary given the CDK's own way, which the CDK applies to the app's roles alone."""

import pytest

from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

CDKS_KEY = "@aws-cdk/core:permissionsBoundary"
BOUNDARY = "arn:aws:iam::123456789012:policy/team/bound"


EXAMPLE = "-c permissions_boundary=arn:aws:iam::ACCOUNT:policy/NAME"
WITHOUT = f"-c '{CDKS_KEY}='"


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"arn": BOUNDARY}, f"-c permissions_boundary={BOUNDARY}"),
        ({"name": "bound"}, EXAMPLE),
        ('{"name": "bound"}', EXAMPLE),
    ],
)
def test_it_is_refused_without_the_flag(given: object, command: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings({CDKS_KEY: given})
    assert CDKS_KEY in str(raised.value)
    assert "roles that ParallelCluster makes" in str(raised.value)
    assert f"{command} (" in str(raised.value)


def test_a_cluster_without_it_has_a_way() -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings({CDKS_KEY: {"arn": BOUNDARY}})
    assert WITHOUT in str(raised.value)
    flag, _, value = WITHOUT.removeprefix("-c ").strip("'").partition("=")
    assert read_settings({flag: value}).permissions_boundary is None


@pytest.mark.parametrize("name", ["cdk-${Qualifier}-b", "NA ME", "a;b"])
def test_a_boundary_has_the_characters_of_iam(name: str) -> None:
    with pytest.raises(ConfigurationError, match="permissions_boundary"):
        read_settings({"permissions_boundary": f"arn:aws:iam::123456789012:policy/{name}"})


def test_with_the_flag_it_is_taken() -> None:
    context = {CDKS_KEY: {"arn": BOUNDARY}, "permissions_boundary": BOUNDARY}
    assert read_settings(context).permissions_boundary == BOUNDARY
