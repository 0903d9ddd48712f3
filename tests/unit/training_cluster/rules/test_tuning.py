"""Wrong values of the flags that adjust nodes, and what the images of the nodes need."""

import pytest

from training_cluster.catalog.families import load_base
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

GROUP = "sg-0123456789abcdef0"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"compute_root_gib": "20"}, "allowed: a whole number from 40 to 16384"),
        ({"head_image": "official"}, "allowed: an AMI id"),
        ({"security_groups": "sg-1"}, '"sg-1" is not the id of a security group'),
        ({"security_groups": f"{GROUP},{GROUP}"}, "is given twice"),
        ({"security_groups": f"{GROUP},"}, "a word is empty"),
    ],
)
def test_a_wrong_value_of_tuning_is_refused(flags: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings(flags)
    assert said in str(raised.value)
    assert f"type:    -c {next(iter(flags))}=" in str(raised.value)


def test_the_root_volume_holds_a_built_image() -> None:
    least = load_base().image_recipes["gpu"].root_gib
    with pytest.raises(ConfigurationError, match=f"type:    -c compute_root_gib={least}"):
        read_settings({"image": "build", "compute_root_gib": str(least - 1)})
    assert read_settings({"image": "build", "compute_root_gib": str(least)})
    assert read_settings({"compute_root_gib": "40"})


def test_the_head_nodes_image_is_checked() -> None:
    settings = read_settings({"head_image": "ami-0123456789abcdef0", "head_root_gib": "200"})
    assert settings.own_images == {"ami-0123456789abcdef0": 200}
