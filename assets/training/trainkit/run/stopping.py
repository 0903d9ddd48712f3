"""Handler of SIGTERM, after which a rank finishes its step, saves and ends."""

from __future__ import annotations

import signal
import types


class Stop:
    """Request to stop, by the SIGTERM that Slurm sends before it takes the nodes away.

    Ranks get the signal in different steps: reduce it over ranks before acting, then decide together.
    """

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: types.FrameType | None) -> None:
        self.asked = True
