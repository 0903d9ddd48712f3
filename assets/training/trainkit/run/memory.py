"""The most memory that this rank has used so far."""

from __future__ import annotations

import resource
from typing import Any


def peak_bytes(device: Any) -> int:
    """Of a CUDA device what torch had allocated, else what was resident of this process (getrusage(2))."""
    if str(device).startswith("cuda"):
        import torch  # noqa: PLC0415 (loads for seconds, and some trainers have none)

        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
