"""The three apps, synthesised once for all tests of stacks."""

from collections.abc import Callable

import pytest
from aws_cdk.assertions import Template

from tests.unit.stacks.app import BROUGHT, EVERYTHING, App
from tools.synth_families import OTHERS
from training_cluster.stack_names import FORMER_DEFAULT

Synthesise = Callable[..., dict[str, Template]]


def _app(synthesise: Synthesise, flags: dict[str, str]) -> App:
    return App.of({stack: each.to_json() for stack, each in synthesise(**flags).items()})


@pytest.fixture(scope="session")
def default(synthesise: Synthesise) -> App:
    """Return the app without a flag."""
    return _app(synthesise, {})


@pytest.fixture(scope="session")
def everything(synthesise: Synthesise) -> App:
    """Return the app with every addition of a flag, SSH from anywhere, and the name of earlier releases."""
    return _app(synthesise, {**EVERYTHING, "cluster_name": FORMER_DEFAULT})


@pytest.fixture(scope="session")
def people(synthesise: Synthesise) -> App:
    """Return the app of a cluster that several people share, with what jobs may be granted."""
    return _app(synthesise, OTHERS["people"])


@pytest.fixture(scope="session")
def brought(synthesise: Synthesise) -> App:
    """Return the app of another cluster in a network, on storage and with a database that exist."""
    return _app(synthesise, BROUGHT)
