"""Hardware counters of this node's EFA devices, by the kernel's files; nodes without EFA have none.

A node has up to 32 devices with two dozen counters each: a counter is one sample, summed over the devices,
and only errors of a device are a sample of their own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from textfile import Sample

_DEVICES = Path(os.environ.get("TRAINING_ROOT") or "/") / "sys" / "class" / "infiniband"
# A setting of the kernel's cache of the counters, not a counter.
_NO_COUNTER = "lifespan"
_ERRORS = ("drops", "err", "_events", "retrans_pkts")


def efa_samples() -> Iterator[Sample]:
    """Yield all counters, such as tx_bytes, rdma_write_bytes and, of newer cards, retrans_pkts."""
    sums: Counter[str] = Counter()
    for file in sorted(_DEVICES.glob("*/ports/*/hw_counters/*")):
        if file.name != _NO_COUNTER:
            value = int(file.read_text(encoding="ascii"))
            sums[file.name] += value
            if value and file.name.endswith(_ERRORS):
                labels = {"device": file.parents[3].name, "counter": file.name}
                yield Sample("efa_device_errors_total", value, labels)
    for counter, value in sums.items():
        yield Sample("efa_hw_counter_total", value, {"counter": counter})
