"""Retries of throttled calls within the time limit of a function.

errors.py (AWS's codes) and library_call.py (the library's answers) decide which errors are retried.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from errors import TransientError

_PAUSES_S = (2, 4, 8, 16)  # 30 s in all, of the 15 minutes that a function has
_Answer = TypeVar("_Answer")


def retry(subject: str, call: Callable[[], _Answer]) -> _Answer:
    """Repeat a throttled call for up to half a minute.

    Args:
        subject: name of the cluster, or of the library's operation; each line in the log begins with it.

    Raises:
        TransientError: AWS did not answer within half a minute.
    """
    for pause_s in _PAUSES_S:
        try:
            return call()
        except TransientError as error:
            print(f"{subject}: asking again in {pause_s} s: {error}")
            time.sleep(pause_s)
    return call()
