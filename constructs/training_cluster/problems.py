"""Errors in the user's input: the mistake, its place, the allowed values, what to type."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class ConfigurationError(Exception):
    """A mistake in the user's input. The message is complete: it is printed without a traceback."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ' Did you mean "x"?' for the closest of the choices, or an empty string."""
    close = nearest(word, choices)
    return f' Did you mean "{close}"?' if close else ""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return the closest of the choices, or an empty string if none is close."""
    return next(iter(difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)), "")


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Values that do not go together."""

    problem: str
    mend: str
    """Text of what to type instead."""
