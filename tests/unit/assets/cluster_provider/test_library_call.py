"""One call of the library: caches are cleared before it, and reading is retried."""

from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.library_module import AwsError, Pcluster
from tests.unit.assets.cluster_provider.fakes.provider import Provider

FOUND = {
    "clusterStatus": "UPDATE_FAILED",
    "cloudFormationStackStatus": "UPDATE_ROLLBACK_COMPLETE",
    "tags": [{"key": "team", "value": "language"}],
    "headNode": {"instanceId": "i-1"},
    "creationTime": "monday",
    "lastUpdatedTime": "tuesday",
}


def test_each_call_clears_the_library_s_caches(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [FOUND, FOUND]
    library.find("c")
    library.find("c")
    assert pcluster.resets == ["cache", "session"] * 2


def test_what_became_of_a_url_is_forgotten_too(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [FOUND]
    pcluster.urls["s3://bucket/bootstrap.sh"] = "no connection"
    library.find("c")
    assert pcluster.urls == {}


def test_reading_is_patient_for_half_a_minute(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [AwsError("slow down", "Throttling")] * 4 + [FOUND]
    assert library.find("c").status == "UPDATE_FAILED"
    assert provider.slept == [2, 4, 8, 16]


def test_retries_end(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [AwsError("slow down", "Throttling")] * 9
    with pytest.raises(provider.errors.TransientError):
        library.find("c")
    assert len(pcluster.asked) == 5


@pytest.mark.parametrize("operation", ["create", "update"])
def test_a_change_is_requested_once(
    provider: Provider, library: Any, pcluster: Pcluster, operation: str
) -> None:
    pcluster.answers = [AwsError("slow down", "Throttling")] * 9
    with pytest.raises(provider.errors.TransientError):
        getattr(library, operation)("c", {})
    assert len(pcluster.asked) == 1
    assert provider.slept == []
