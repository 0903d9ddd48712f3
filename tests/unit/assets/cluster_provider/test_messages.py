"""The messages in CloudFormation when the provider refuses or fails."""

import json
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    LOGIN_NODES,
    NEVER,
    OR_DRAIN,
    OR_TERMINATE,
    STOP,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider

HUGE = ["x", "é", "集", '"', "\n", "😀"]
# A custom resource's answer; the rest is ids, the address of the log and the framework's stack trace.
ANSWER_BYTES, REST_BYTES = 4096, 1500


def _state(provider: Provider, **more: Any) -> Any:
    provider.library.exists("CREATE_FAILED", **more)
    return provider.library.cluster


def _failure(provider: Provider, state: Any, **more: Any) -> str:
    told: dict[str, Any] = {"events": [], "log_group": "/aws/group", "saved_to": "s3://bucket/logs/"} | more
    return str(provider.messages.failure("training", state, **told))


def test_errors_come_before_warnings_and_notes(provider: Provider) -> None:
    levels = ["INFO", "WARNING", "ODD", "ERROR"]
    problems = [{"level": each, "type": "T", "message": each.lower()} for each in levels]
    refused = provider.refused(
        "Invalid.", configuration_validation_errors=problems, update_validation_errors=[refused_change(STOP)]
    )
    assert provider.messages.refusal("training", refused).split(" | ") == [
        *("Invalid.", "ERROR T: error", "WARNING T: warning", "INFO T: info", "ODD T: odd"),
        f"SlurmQueues[q].CapacityType: ONDEMAND -> SPOT: {STOP}",
    ]
    refused = provider.errors.RefusedError({})
    assert provider.messages.refusal("training", refused) == (
        "The ParallelCluster library refused the request"
    )


@pytest.mark.parametrize("length", [8, 40, 60])
def test_the_second_clusters_name_differs_and_fits(provider: Provider, length: int) -> None:
    said = provider.messages.not_ours("c" * length)
    name = said.rpartition("cluster_name=")[2].partition(";")[0]
    assert name.endswith("-2")
    assert len(name) <= 40
    assert said.endswith(f": pcluster delete-cluster --cluster-name {'c' * length}")


@pytest.mark.parametrize("character", HUGE)
def test_a_long_message_is_cut_to_fit(provider: Provider, character: str) -> None:
    fit = provider.messages.fit
    cut = fit(character * 10_000, 1000)
    assert (character * 10_000).startswith(cut.partition(" ... (cut")[0])
    assert 900 < len(json.dumps(cut)) <= 1000
    assert (fit(character * 80, 1000), fit("abc", 5)) == (character * 80, "abc")
    assert fit("job \x1b[31m\x00") == "job ?[31m?"
    failures = ({"failureCode": "Boot", "failureReason": character * 9000},)
    said = _failure(provider, _state(provider, failures=failures))
    assert said.startswith("Cluster training is CREATE_FAILED | Boot: ")
    for told in ("s3://bucket/logs/", "/aws/group", "pcluster get-cluster-stack-events"):
        assert told in said
    long, refused = character * 9000, provider.refused(character * 9000)
    messages, change = provider.messages, refused_change(OR_DRAIN, parameter=character * 9000)
    wants = provider.refused("m", update_validation_errors=[change])
    never = provider.refused("m", update_validation_errors=[change | {"message": character * 9000}])
    failures = ({"failureCode": "Boot", "failureReason": long},)
    every = [
        messages.refusal("training", refused),
        messages.refusal("training", never),
        messages.busy("training", 3, [long], wants),
        messages.cannot_drain("training", [long], wants),
        messages.no_answer("training", Exception(long)),
        _failure(provider, _state(provider, failures=failures), events=[long]),
    ]
    for each in every:
        assert len(json.dumps(each)) <= ANSWER_BYTES - REST_BYTES
        assert each.endswith("(cut; the function's log has all of it)")


def test_many_jobs_are_shown_in_part(provider: Provider) -> None:
    jobs = [f"{n} job (ann, 1:00)" for n in range(30)]
    wants = provider.refused("m", update_validation_errors=[refused_change(STOP)])
    said = provider.messages.busy("training", 30, jobs, wants)
    assert "9 job (ann, 1:00) ..." in said
    assert "10 job" not in said
    assert "..." not in provider.messages.busy("training", 30, jobs[:10], wants)
    assert "10 job" not in provider.messages.cannot_drain("training", jobs, wants)
    assert "Jobs" not in provider.messages.cannot_drain("training", None, wants)


@pytest.mark.parametrize(
    ("library_says", "stop", "drain", "impossible"),
    [
        ([], False, False, False),
        ([STOP], True, False, False),
        ([OR_DRAIN], True, True, False),
        ([OR_TERMINATE], True, False, False),
        ([OR_DRAIN, OR_DRAIN], True, True, False),
        ([OR_DRAIN, STOP], True, False, False),
        ([NEVER], False, False, True),
        ([STOP, NEVER], False, False, True),
        ([OR_DRAIN, NEVER], False, False, True),
        ([STOP, LOGIN_NODES], False, False, False),
    ],
)
def test_the_librarys_words_name_the_remedy(
    provider: Provider, library_says: list[str], stop: bool, drain: bool, impossible: bool
) -> None:
    changes = [refused_change(each) for each in library_says]
    refused: Any = provider.refused("Update failure", update_validation_errors=changes)
    assert (refused.requires_stopped_fleet, refused.may_drain, refused.is_impossible) == (
        stop,
        drain,
        impossible,
    )
