"""The provider's own calls of AWS, from its source."""

from pathlib import Path

import pytest

from rehearsal.recording.provider_calls import CODE, provider_calls
from training_cluster.permissions.table import load


@pytest.mark.slow
def test_the_providers_own_calls_are_those_of_its_source() -> None:
    source = {(action, f"{file} {operation}") for file, operation, action in provider_calls(CODE)}
    assert {(row.action, call) for row in load() for call in row.provider} == source, "type: make permissions"


def test_a_call_is_found_in_a_file_by_its_client_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        'boto3.client("s3").get_paginator("list_objects_v2")\nboto3.client("ssm").put_parameter()\nput_object()\n'
    )
    assert list(provider_calls(tmp_path)) == [
        ("own.py", "ListObjectsV2", "s3:ListBucket"),
        ("own.py", "PutParameter", "ssm:PutParameter"),
    ]
