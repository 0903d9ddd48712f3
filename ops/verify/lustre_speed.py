"""Measures how fast this node writes to a folder and reads from it, without its memory.

    python3 -I -c TEXT FOLDER FILES MIB SECONDS

Prints one JSON object: GB/s written and read, bytes, and Lustre's messages over EFA meanwhile (-1 where the
user may not ask for them). Each of FILES threads writes one file of at most MIB in a folder of its own, and
reads it, for at most SECONDS each. The folder is removed at the end, also after SIGTERM. Runs on compute
nodes: standard library, Python 3.9.
"""

import json
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

BLOCK = 4 << 20
MOST_PART = 20
"""Divisor of the free space; at most the quotient is written."""


def write(most: int, seconds: float, path: str) -> int:
    """Write random bytes, which no file system compresses, and return their number."""
    data, written, end = mmap.mmap(-1, BLOCK), 0, time.monotonic() + seconds
    data.write(os.urandom(BLOCK))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    try:
        while written + BLOCK <= most and time.monotonic() < end:
            written += os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    return written


def read(seconds: float, path: str) -> int:
    """Read a file, and return the number of bytes."""
    data, total, end = mmap.mmap(-1, BLOCK), 0, time.monotonic() + seconds
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        while time.monotonic() < end and (count := os.readv(file, [data])):
            total += count
    finally:
        os.close(file)
    return total


def efa_messages() -> int:
    """Return the messages of Lustre over EFA since the modules were loaded; -1 if they cannot be read."""
    command = ["sudo", "-n", "lnetctl", "net", "show", "--net", "efa", "-v"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return -1
    return sum(map(int, re.findall(r"(?:send|recv)_count: (\d+)", said)))


def main(folder: str, files: int, mib: int, seconds: float) -> None:
    """Measure, and print the figures."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    disk = os.statvfs(folder)
    most = min(mib << 20, disk.f_bavail * disk.f_frsize // MOST_PART // files)
    before = efa_messages()
    with (
        tempfile.TemporaryDirectory(prefix="trainctl-verify-", dir=folder) as own,
        ThreadPoolExecutor(files) as pool,
    ):
        paths, speeds, sizes = [f"{own}/{number}" for number in range(files)], [], []
        for work in (partial(write, most, seconds), partial(read, seconds)):
            begin = time.monotonic()
            sizes.append(sum(pool.map(work, paths)))
            speeds.append(sizes[-1] / 1e9 / (time.monotonic() - begin))
    figures = {"written_gb_s": speeds[0], "read_gb_s": speeds[1], "bytes": sum(sizes)}
    print(json.dumps({**figures, "efa_messages": efa_messages() - before if before >= 0 else -1}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
