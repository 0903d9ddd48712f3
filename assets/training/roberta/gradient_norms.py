"""Norms of the gradients, as fairseq reports them for all ranks. Neither torch nor fairseq is imported."""

from __future__ import annotations

import math
import re

_NORM = re.compile(r"^rank\s+\d+ = (\S+)$", re.MULTILINE)


def finite_norms(words: str) -> list[float]:
    """Return each rank's norm from fairseq's error, or an empty list unless all exist and are finite.

    fairseq's Trainer._check_grad_norms ends a run with the same message if the norms differ between ranks and
    if one is not finite. Only the numbers distinguish the two.
    """
    norms = [float(each) for each in _NORM.findall(words)]
    return norms if all(map(math.isfinite, norms)) else []
