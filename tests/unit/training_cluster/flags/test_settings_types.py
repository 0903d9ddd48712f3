"""Values of cdk.json that are of another type than their flag: one message, no traceback."""

from __future__ import annotations

import pytest

from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


@pytest.mark.parametrize("value", [0, 1.5, True, None, [], ["p4d"], {"a": "b"}])
@pytest.mark.parametrize("flag", Settings.model_fields)
def test_a_value_of_another_type_in_cdk_json_is_refused_or_taken(flag: str, value: object) -> None:
    try:
        read_settings({flag: value})
    except ConfigurationError as refused:
        assert f"-c {flag}=" in str(refused) or "type: " in str(refused)


def test_a_number_for_an_instance_type_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigurationError, match=r"=1\.5: .*\n.*\n    type:    -c instance_type="):
        read_settings({"instance_type": 1.5})
