"""The table of permissions against the real library: its calls, and the resource types that it would make."""

from __future__ import annotations

import pytest

from rehearsal.recording.actions import actions_of
from rehearsal.recording.recording import Recording
from rehearsal.recording.run import record
from training_cluster.catalog.families import family_names
from training_cluster.permissions.table import Row, load

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

MEND = "type: make permissions"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return load()


def _calls(recording: Recording, *, of_library: bool) -> set[tuple[str, str, str]]:
    """Yield action, origin and operation of every call."""
    words = [call.split() for call in recording.calls]
    return {
        (action, origin, operation)
        for origin, service, operation, parameters in words
        for action in actions_of(service, operation, parameters)
        if (origin == "library") == of_library
    }


def test_the_librarys_calls_in_create_update_and_delete_are_those_of_the_table(
    recording: Recording, table: list[Row]
) -> None:
    named = {(row.action, "library", operation) for row in table for operation in row.calls}
    assert _calls(recording, of_library=True) == named, MEND


def test_the_provider_makes_no_call_of_its_own_that_the_table_has_not(
    recording: Recording, table: list[Row]
) -> None:
    made = _calls(recording, of_library=False)
    named = {(row.action, *call.split()) for row in table for call in row.provider}
    assert made <= named, MEND
    assert ("s3:PutObject", "failure_logs.py", "PutObject") in made


def test_all_families_and_features_were_made_but_for_what_our_flags_refuse(recording: Recording) -> None:
    assert set(family_names()) <= recording.made
    assert all("context flags, nothing was done" in reason for reason in recording.refused.values())
    assert {"login nodes", "accounting, new", "home on EFS", "boundary and tags"} <= recording.made


def test_the_resource_types_of_all_families_and_features_are_those_of_the_table(
    recording: Recording, table: list[Row]
) -> None:
    assert set(recording.types) == {name for row in table for name in row.type_names}, MEND


def test_no_template_sets_a_property_that_an_action_is_left_out_for(
    recording: Recording, table: list[Row]
) -> None:
    for row in table:
        for name, properties in row.unset.items():
            assert not set(properties) & recording.types[name], f"{row.action}: {name}"
