"""The explanation of a denied call."""

import re
from typing import Any

import pytest
from ministack.core.iam_evaluator import parse_policy_document

from rehearsal.local_aws.rights.nearest import explain
from rehearsal.local_aws.rights.need import Need

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/training"
STATEMENT: dict[str, Any] = {
    "Sid": "Tables",
    "Effect": "Allow",
    "Action": ["dynamodb:GetItem"],
    "Resource": [TABLE],
    "Condition": {"StringEquals": {"aws:RequestedRegion": "us-east-1"}},
}


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (Need(action="dynamodb:GetItem", resource=TABLE), "Tables wants .*RequestedRegion"),
        (Need(action="dynamodb:GetItem", resource=f"{TABLE}-2"), "Tables allows it only on .*table/training"),
        (Need(action="dynamodb:PutItem", resource=TABLE), "Tables, of the same service, does not name"),
        (Need(action="s3:PutObject"), "none of 1 statements names an action of s3"),
    ],
)
def test_nearest_statement_is_named_with_its_difference(need: Need, words: str) -> None:
    policy = parse_policy_document({"Statement": [STATEMENT]})
    assert re.search(words, explain(need, [policy], bounded=False))
