"""The provider's own calls of AWS, from its source."""

import pytest

from rehearsal.recording.provider_calls import CODE, provider_calls
from training_cluster.permissions.table import load


@pytest.mark.slow
def test_own_calls_are_those_of_the_source() -> None:
    source = {(action, f"{file} {operation}") for file, operation, action in provider_calls(CODE)}
    assert {(row.action, call) for row in load() for call in row.provider} == source, "type: make permissions"
