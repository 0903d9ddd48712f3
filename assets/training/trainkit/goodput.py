"""Goodput of a run: what its nodes did in the time for which they were paid.

Only the standard library, and Python 3.9: the head node's python3 runs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# docs/costs.md explains them.
PARTS = ("training", "saving", "starting", "checking", "restarts", "lost steps", "idle nodes")


@dataclass
class Stretch:
    """From the first step of a start to its last row that no later start repeated, and the saves between."""

    first: float | None = None
    last: float | None = None
    save_s: float = 0.0
    local_save_s: float = 0.0
    saves: int = 0
    """Number of the shared saves, which save_s is of."""

    def add(self, at: float, *, spent_s: float, save_s: float, local_save_s: float = 0.0) -> None:
        """Add a row that was written at a time, after so many seconds of a step, a validation and a save."""
        self.first = at - spent_s if self.first is None else self.first
        self.last = at
        self.save_s += save_s
        self.local_save_s += local_save_s
        self.saves += save_s > 0


def split(starts: Sequence[dict[str, Any]], stretches: Sequence[Stretch]) -> dict[str, Any] | None:
    """Split the seconds of all nodes by PARTS, and give each start its `seconds` and all nodes', `paid_s`.

    A start whose end job.slurm did not see ends with its last row. Return None if no row has a time.
    """
    parts, waiting_s, saved_s, restarts = dict.fromkeys(PARTS, 0.0), 0.0, 0.0, []
    last, last_end = dict[str, Any](), -math.inf
    for start, stretch in zip(starts, stretches):  # noqa: B905
        begin, nodes = start["begin"], start["node_count"]
        end = max(begin, start["end"] or stretch.last or begin)
        is_restart = start["job"] == last.get("job")
        stays = is_restart and start["allocation"] == last["allocation"]
        last_end = min(last_end, begin) if is_restart else -math.inf
        since = last_end if stays else max(begin - start["held_s"], last_end)
        first = begin if stretch.first is None else min(max(stretch.first, begin), end)
        kept = min(max(stretch.last or 0.0, first), end)
        saving_s = min(stretch.save_s + stretch.local_save_s, kept - first)
        parts["training"] += nodes * (kept - first - saving_s)
        parts["saving"] += nodes * saving_s
        saved_s += min(stretch.save_s, saving_s)
        parts["idle nodes"] += (start["held"] - nodes) * (kept - first)
        parts["checking" if stays else "starting"] += start["held"] * (begin - since)
        parts["restarts" if stays else "starting"] += start["held"] * (first - begin)
        parts["lost steps"] += start["held"] * (end - kept)
        start["seconds"], start["paid_s"] = round(end - begin, 1), start["held"] * (end - since)
        if is_restart:
            waiting_s += since - last_end
            restarts += [] if stretch.first is None else [first - since]
        last, last_end = start, end
    saves = sum(stretch.saves for stretch in stretches)
    found = {
        "node_s": {name: round(seconds, 1) for name, seconds in parts.items()},
        "waiting_s": round(waiting_s, 1),
        "save_s": round(saved_s / saves, 3) if saves else None,
        "restart_s": round(sum(restarts) / len(restarts), 1) if restarts else None,
        "unseen_ends": sum(start["end"] is None for start in starts[:-1]),
    }
    return found if any(stretch.first is not None for stretch in stretches) else None
