"""moto in this process, with some of the local AWS's corrections for one test."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.hooks import Hook

Corrected = Callable[..., Callable[[str], Any]]


def _instead(original: Any, _present: Any) -> Any:
    return original


@pytest.fixture
def corrected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Corrected]:
    """Return a function that installs corrections of these hooks, and returns the maker of clients."""
    originals: dict[Hook, Any] = {}

    def install(correct: Callable[[], None], *changed: Hook) -> Callable[[str], Any]:
        originals.update({hook: hooks.find(hook) for hook in changed})
        correct()
        return lambda service: boto3.client(service, REGION)  # type: ignore[call-overload]

    monkeypatch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        yield install
    for hook, original in originals.items():
        hooks.replace(hook, functools.partial(_instead, original))
