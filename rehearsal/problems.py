"""The error that ends a rehearsal with one clear message."""

from __future__ import annotations


class RehearsalError(Exception):
    """A step failed or an option is wrong. The message names the place, the problem and its remedy."""
