"""One throttled call is no failure: ask again a few times, within what a function's life allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from answers import TransientError

_PAUSES_S = (2, 4, 8, 16)  # 30 s in all, of the 15 minutes that a function has
_Answer = TypeVar("_Answer")


def patiently(what: str, call: Callable[[], _Answer]) -> _Answer:
    """Call until it is answered. Raises TransientError when it is not, after half a minute."""
    for pause_s in _PAUSES_S:
        try:
            return call()
        except TransientError as error:
            print(f"{what}: asking again in {pause_s} s: {error}")
            time.sleep(pause_s)
    return call()
