"""Ends of the terminal and of the process, which become a Ctrl-C, so that nodes do not continue to cost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGHUP, signal.SIGTERM)
_HELD = (signal.SIGINT, *_SIGNALS)


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGHUP or SIGTERM, and ignore later ones.

    A signal that is ignored, as SIGHUP under nohup, stays ignored. The shell and the kernel may each send a
    SIGHUP when a terminal closes; the second one must not interrupt what is cleaned up.
    """
    former = {each: signal.getsignal(each) for each in _SIGNALS}
    taken = [each for each, handler in former.items() if handler is signal.SIG_DFL]

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in taken:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C and the other signals until the end: what is done in between is done whole."""
    former = {each: signal.getsignal(each) for each in _HELD}
    caught: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    for each, handler in former.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, remember)
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
        if caught:
            signal.raise_signal(caught[0])
