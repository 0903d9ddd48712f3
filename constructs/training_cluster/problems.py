"""What a person reads when an input is wrong: what, where, what is allowed, what to type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class ConfigurationError(Exception):
    """An input of the user's is wrong. The message is complete: print it, no traceback."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ' Did you mean "x"?' for the closest of the choices, or an empty string."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f' Did you mean "{close[0]}"?' if close else ""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Values that do not go together."""

    problem: str
    mend: str
    """What to type instead."""
