"""Traffic and errors of the GPUs' NVLinks, by `nvidia-smi nvlink`; GPUs without NVLink have no lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from command import output_of
from textfile import Sample

_GPU = re.compile(r"GPU (\d+):")
_DATA = re.compile(r"Link \d+: Data (Tx|Rx): (\d+) KiB")
_ERRORS = re.compile(r"Link \d+: (Replay|Recovery|CRC)\b[^:]*: (\d+)$")
_KIB = 1024


def nvlink_samples() -> Iterator[Sample]:
    """Yield the sums over each GPU's links."""
    for (gpu, direction), kib in _sums(output_of("nvidia-smi", "nvlink", "-gt", "d"), _DATA).items():
        yield Sample("gpu_nvlink_bytes_total", kib * _KIB, {"gpu": gpu, "direction": direction})
    for (gpu, kind), errors in _sums(output_of("nvidia-smi", "nvlink", "-e"), _ERRORS).items():
        yield Sample("gpu_nvlink_errors_total", errors, {"gpu": gpu, "kind": kind})


def _sums(text: str, value: re.Pattern[str]) -> Counter[tuple[str, str]]:
    """Add up the values of each GPU's links by their names."""
    sums: Counter[tuple[str, str]] = Counter()
    gpu = ""
    for line in text.splitlines():
        if begun := _GPU.match(line):
            gpu = begun[1]
        elif found := value.search(line.strip()):
            sums[gpu, found[1].lower()] += int(found[2])
    return sums
