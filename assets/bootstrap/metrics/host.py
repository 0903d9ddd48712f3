"""Processor time of this machine: node_exporter's own has 8 series for each of a node's 192 processors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from textfile import Sample

# Fields of the first line of /proc/stat (proc(5)).
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def host_samples(stat: Path = Path("/proc/stat")) -> Iterator[Sample]:
    """Yield the seconds of all processors together, by mode, and their number."""
    first = stat.read_text(encoding="ascii").partition("\n")[0].split()
    for mode, ticks in zip(_MODES, first[1:]):  # noqa: B905 (3.9)
        yield Sample("host_cpu_seconds_total", int(ticks) / os.sysconf("SC_CLK_TCK"), {"mode": mode})
    yield Sample("host_cpus", os.cpu_count() or 0)
