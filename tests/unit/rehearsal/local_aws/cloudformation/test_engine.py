"""The local AWS's changes of an emulator's answers: AWS's own messages, and no other change."""

import string
from typing import Any

import pytest

from rehearsal.local_aws.cloudformation.engine import path_style
from rehearsal.local_aws.secrets import with_exclusions


@pytest.mark.parametrize(
    ("wanted", "excluded"),
    [
        ({}, ""),
        ({"ExcludePunctuation": True}, string.punctuation),
        ({"ExcludePunctuation": "true", "ExcludeCharacters": "l"}, "l" + string.punctuation),
        ({"ExcludeNumbers": True, "ExcludePunctuation": False}, string.digits),
    ],
)
def test_generated_secret_has_the_templates_exclusions(wanted: dict[str, Any], excluded: str) -> None:
    exact = with_exclusions({"GenerateSecretString": wanted})
    assert exact["GenerateSecretString"].get("ExcludeCharacters", "") == excluded


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://b.s3.us-east-1.amazonaws.com/a/t.yaml?x=1", "https://localhost/b/a/t.yaml?x=1"),
        ("https://b.s3.amazonaws.com/t.yaml", "https://localhost/b/t.yaml"),
        ("https://localhost:1/b/t.yaml", "https://localhost:1/b/t.yaml"),
    ],
)
def test_template_urls_have_both_styles(url: str, expected: str) -> None:
    assert path_style(url) == expected
