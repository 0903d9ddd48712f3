"""The local AWS's changes of an emulator's answers: AWS's own messages, and no other change."""

import string
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.local_aws.cloudformation.engine import name_missing_parameter
from rehearsal.local_aws.secrets import with_exclusions


def _failing(message: str) -> Callable[..., Any]:
    def resolve(*_arguments: Any) -> Any:
        raise ValueError(message)

    return resolve


def test_a_missing_ssm_parameter_is_named_as_cloudformation_names_it() -> None:
    emulator = "Parameter 'Ami' failed to resolve: SSM parameter '/images/v100' does not exist"
    with pytest.raises(ValueError, match=r"^Unable to fetch parameters \[/images/v100\] from"):
        name_missing_parameter(_failing(emulator))({}, [])


def test_other_errors_of_parameters_stay_as_they_are() -> None:
    with pytest.raises(ValueError, match=r"^Parameter 'A' has no Default$"):
        name_missing_parameter(_failing("Parameter 'A' has no Default"))({}, [])


@pytest.mark.parametrize(
    ("wanted", "excluded"),
    [
        ({}, ""),
        ({"ExcludePunctuation": True}, string.punctuation),
        ({"ExcludePunctuation": "true", "ExcludeCharacters": "l"}, "l" + string.punctuation),
        ({"ExcludeNumbers": True, "ExcludePunctuation": False}, string.digits),
    ],
)
def test_a_generated_secret_excludes_what_the_template_excludes(
    wanted: dict[str, Any], excluded: str
) -> None:
    def generate(properties: dict[str, Any]) -> str:
        return str(properties["GenerateSecretString"].get("ExcludeCharacters", ""))

    assert with_exclusions(generate)({"GenerateSecretString": wanted}) == excluded
