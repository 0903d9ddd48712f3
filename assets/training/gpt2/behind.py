"""Numbers of a step, read while the device computes the next one; otherwise it would wait for Python."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

SLOW_S = 1.0
"""Length of a step from which its numbers are read at once: the wait is then a small part of it, and a stop,
which takes effect in the step after the one that reports it, would come a whole step later."""


class Mark:
    """A point in the work of a device, behind everything that was given to it before."""

    def __init__(self, device: torch.device) -> None:
        self._event = torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None
        if self._event:
            self._event.record()
        # Other devices have finished what was given to them.
        self._time = time.perf_counter()

    def wait(self) -> None:
        """Wait until the device is there, but not for what was given to it since."""
        if self._event:
            self._event.synchronize()

    def seconds_since(self, earlier: Mark) -> float:
        """Return the seconds between two marks that the device has reached."""
        if self._event and earlier._event:
            return float(earlier._event.elapsed_time(self._event)) / 1000
        return self._time - earlier._time


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step that was given to the device."""

    number: int
    learning_rate: float
    tokens: int
    """Tokens of the run up to this step."""
    data_s: float
    begin: Mark
    """End of the step before, if the device had work all the time."""
    end: Mark
    sums: torch.Tensor
    """Sums over the ranks of loss, requests to stop, norm of the gradients and last_s; valid after `end`."""

    @property
    def seconds(self) -> float:
        """Length of the step."""
        return self.end.seconds_since(self.begin)


class Behind:
    """Steps that were given to the device and whose numbers are not read yet."""

    def __init__(self, record: Callable[[Step, float, float], None], *, ranks: int) -> None:
        """Begin without a step.

        Args:
            record: takes a step, the mean of its loss over the ranks, and the norm of its gradients.
            ranks: number of ranks.
        """
        self._record, self._ranks = record, ranks
        self._unread: list[Step] = []
        self.last_s = self._usual_s = math.inf
        """Length on this rank of the last step that was read; infinite before the first."""

    def begin(self, device: torch.device) -> Mark:
        """Return the begin of the next step."""
        return self._unread[-1].end if self._unread else Mark(device)

    def add(self, step: Step, *, at_once: bool) -> bool:
        """Read the step before this one, and this one too if it has to be; return whether a rank stops.

        Every rank reads the same sums before it decides, so all decide the same.

        Args:
            step: step that was just given to the device.
            at_once: True if something follows that is not a step, such as a save.
        """
        stopping = self._read()
        self._unread.append(step)
        if at_once or stopping or self._usual_s >= SLOW_S:
            stopping |= self._read()
        return stopping

    def _read(self) -> bool:
        """Wait for the numbers of the step that is not read yet, and record them."""
        if not self._unread:
            return False
        step = self._unread.pop()
        step.end.wait()
        loss, stops, norm, self._usual_s = (each / self._ranks for each in step.sums.tolist())
        self.last_s = step.seconds
        self._record(step, loss, norm)
        return bool(stops > 0)
