"""SIGTERM, which Slurm sends before it takes the nodes away: finish the step, save, leave."""

from __future__ import annotations

import signal
import types


class Stop:
    """Whether this rank was told to stop.

    Others may hear of it a step later: exchange it, then decide together.
    """

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: types.FrameType | None) -> None:
        self.asked = True
