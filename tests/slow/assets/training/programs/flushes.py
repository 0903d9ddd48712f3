"""Start-up hook of Python in ranks: they note what they flush, and a flush takes an hour of a clock.

The clock is time.perf_counter, which measures steps. The notes are lines of $RUN_DIR/flushed-RANK.
"""

import os
import time
from pathlib import Path
from typing import Any

flush, clock = os.fsync, time.perf_counter
flushed: list[Path] = []


def flush_and_note(fd: Any) -> None:
    descriptor = fd if isinstance(fd, int) else fd.fileno()
    flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
    if "RANK" in os.environ:
        with Path(os.environ["RUN_DIR"], f"flushed-{os.environ['RANK']}").open("a") as notes:
            notes.write(f"{flushed[-1]}\n")
    flush(fd)


os.fsync = flush_and_note
time.perf_counter = lambda: clock() + 3600 * len(flushed)
