"""Cores of a rank: ranks that share a CPU node each use their own cores, and one socket's memory.

Only the standard library, on Linux. Call it before the first thread starts: threads inherit the setting.
"""

from __future__ import annotations

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def pin(local_rank: int, ranks: int, *, of: int | None = None) -> set[int]:
    """Bind this process to its share of the node's cores, and return them.

    A share that mpirun or srun has already set remains; `of` is the number of the node's CPUs.
    """
    allowed = os.sched_getaffinity(0)
    if ranks > 1 and len(allowed) * ranks > (of or os.cpu_count() or 1) and len(allowed) >= ranks:
        os.sched_setaffinity(0, share(local_rank, ranks, sorted(allowed, key=place)))
    return os.sched_getaffinity(0)


def share(local_rank: int, ranks: int, ordered: list[int]) -> set[int]:
    """Return this rank's part of the CPUs; the parts' sizes differ by at most one."""
    begin, end = (len(ordered) * rank // ranks for rank in (local_rank, local_rank + 1))
    return set(ordered[begin:end])


def place(cpu: int, cpus: Path = CPUS) -> tuple[int, int, int]:
    """Return socket, core and number of a hardware thread: a key that sorts by socket, siblings together."""
    topology = cpus / f"cpu{cpu}" / "topology"
    found = [
        int(file.read_text()) if (file := topology / name).is_file() else 0
        for name in ("physical_package_id", "core_id")
    ]
    return found[0], found[1], cpu
