"""Peak of the memory that this rank has used."""

from __future__ import annotations

import resource
from typing import Any


def peak_bytes(device: Any) -> int:
    """Return the peak allocated by torch on a CUDA device, else of resident memory (getrusage(2))."""
    if str(device).startswith("cuda"):
        import torch  # noqa: PLC0415 (loads for seconds, and some trainers have none)

        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
