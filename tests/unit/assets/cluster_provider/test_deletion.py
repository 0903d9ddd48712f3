"""Delete: events and records that are not as usual; states.txt has the others."""

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import PARAMETER
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider


def _ends(provider: Provider, asked: Asked) -> None:
    """The cluster goes, and the request with it."""
    assert not asked.poll()
    assert provider.library.cluster.status == "DELETE_IN_PROGRESS"
    assert not asked.poll()
    provider.library.is_gone()
    assert asked.answer() == {"IsComplete": True}


@pytest.mark.parametrize("configuration", ["", "{", "null"])
def test_a_broken_config_stops_no_deletion(provider: Provider, configuration: str) -> None:
    provider.library.exists("CREATE_FAILED")
    _ends(provider, provider.delete(ClusterConfiguration=configuration))


def test_a_generated_id_deletes_by_name(provider: Provider) -> None:
    provider.library.exists()
    _ends(provider, provider.ask(provider.event("Delete") | {"PhysicalResourceId": "stack-Cluster-1ABC"}))


@pytest.mark.parametrize("text", ['{"request_id": "1", "request": "Create", "former_field": 1}', "broken"])
def test_another_versions_record_stops_no_deletion(provider: Provider, text: str) -> None:
    provider.library.exists()
    provider.aws.parameters[PARAMETER] = text
    _ends(provider, provider.delete())
