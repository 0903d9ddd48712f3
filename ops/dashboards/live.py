"""A screen that is drawn again at an interval, until Ctrl-C."""

import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from ops.usage import OpsError

_MOST_FAILURES = 5


def follow(console: Console, draw: Callable[[], RenderableType], *, every_s: float) -> None:
    """Draw until Ctrl-C; a look that fails is told on the screen, and five in a row end it.

    Raises:
        OpsError: the error of the fifth look without an answer.
    """
    failures = 0
    with Live(draw(), console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.refresh()
                time.sleep(every_s)
                try:
                    live.update(draw())
                    failures = 0
                except OpsError as error:
                    failures += 1
                    if failures == _MOST_FAILURES:
                        raise
                    live.update(Text(f"{error}\nTried again in {every_s:g} s.", style="yellow"))
        except KeyboardInterrupt:
            return
