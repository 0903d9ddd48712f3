"""Fixtures of the tests of jobs, shared with the unit tests."""

from tests.unit.ops.conftest import call, cluster

__all__ = ["call", "cluster"]
