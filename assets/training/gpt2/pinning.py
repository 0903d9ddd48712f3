"""Cores of a rank: where several ranks share a CPU node, each keeps to its own, and to one socket's memory.

Only the standard library; Linux. Before the first thread starts: threads inherit it.
"""

from __future__ import annotations

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def pin(local_rank: int, ranks: int, *, of: int | None = None) -> set[int]:
    """Keep this process to its share of the node's cores, and return these.

    What mpirun or srun has cut to a share already is left as it is; `of` is how many CPUs the node has.
    """
    allowed = os.sched_getaffinity(0)
    if ranks > 1 and len(allowed) * ranks > (of or os.cpu_count() or 1) and len(allowed) >= ranks:
        os.sched_setaffinity(0, share(local_rank, ranks, sorted(allowed, key=place)))
    return os.sched_getaffinity(0)


def share(local_rank: int, ranks: int, ordered: list[int]) -> set[int]:
    """Return this rank's part of the CPUs; sizes differ by one at most."""
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
