"""The local AWS of this process, empty before and after a test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.in_process import aws
from tests.unit.ops.fake_account import Account


@pytest.fixture
def client() -> Iterator[Callable[[str], Any]]:
    """Return the maker of clients of an empty account."""
    aws().empty()
    yield Account(real=True).client
    aws().empty()
