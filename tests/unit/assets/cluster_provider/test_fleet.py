"""Messages of updates that require a stopped fleet; states.txt has their steps."""

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    HEAD_NODE,
    OR_DRAIN,
    OR_TERMINATE,
    STOP,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider

JOBS = {"Status": "Success", "StandardOutputContent": "7 gpt2 (ann, 1:02)/0/\n8 bert (bob, 0:10)/0/\n"}
NO_JOBS = {"Status": "Success", "StandardOutputContent": ""}


@pytest.fixture(autouse=True)
def _cluster_stands_and_updates_want_a_stopped_fleet(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")
    provider.library.wants = [refused_change(STOP)]


def test_jobs_of_busy_nodes_are_named(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 3, [JOBS]
    said = provider.update().fails()
    assert said.startswith(
        "3 compute nodes of training run, and this update requires them to be stopped. Nothing was"
    )
    assert "Jobs: 7 gpt2 (ann, 1:02); 8 bert (bob, 0:10)." in said
    assert "-c on_busy=stop, which ends them and their jobs." in said
    assert "SlurmQueues[q].CapacityType: ONDEMAND -> SPOT" in said
    assert provider.library.changes == []
    assert provider.aws.commands[0]["InstanceIds"] == [HEAD_NODE]


def test_nodes_without_a_job_end_by_themselves(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 1, [NO_JOBS]
    said = provider.update().fails()
    assert "No job runs on them. Idle nodes above min_nodes end by themselves after some minutes" in said
    assert provider.library.changes == []


def test_unknown_jobs_are_not_reported_as_none(provider: Provider) -> None:
    provider.library.running, provider.aws.unreachable = 1, {"ssm.send_command"}
    assert "The jobs could not be listed" in provider.update().fails()
    assert provider.library.changes == []


@pytest.mark.parametrize(
    ("library_says", "offered"), [(OR_DRAIN, True), (OR_TERMINATE, False), (STOP, False)]
)
def test_draining_is_offered_where_it_suffices(provider: Provider, library_says: str, offered: bool) -> None:
    provider.library.wants = [refused_change(library_says)]
    provider.library.running, provider.aws.invocations = 1, [JOBS]
    assert ("or -c on_busy=drain" in provider.update().fails()) == offered


def test_draining_that_is_not_enough_is_refused(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 2, [JOBS]
    said = provider.update(on_busy="drain").fails()
    assert "draining nodes is not enough" in said
    assert "Jobs: 7 gpt2 (ann, 1:02); 8 bert (bob, 0:10)." in said
    assert "-c on_busy=stop" in said
    assert provider.library.changes == []
