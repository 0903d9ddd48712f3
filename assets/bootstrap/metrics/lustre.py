"""This node's traffic with Lustre, by its client's statistics; nodes without a Lustre client have none."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator

from command import output_of
from textfile import Sample

# NAME COUNT samples [UNIT] and, for bytes, MIN MAX SUM SUM_OF_SQUARES.
_LINE = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\](?: \d+ \d+ (\d+))?", re.MULTILINE)
_BYTES = {"read_bytes": "read", "write_bytes": "write"}
# The kinds that show whether metadata is the limit.
_OPERATIONS = ("open", "close", "getattr", "mkdir", "unlink", "rename")


def lustre_samples() -> Iterator[Sample]:
    """Yield bytes and operations of all of the node's Lustre mounts together."""
    if not shutil.which("lctl"):
        return
    moved: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for name, count, unit, total in _LINE.findall(output_of("lctl", "get_param", "-n", "llite.*.stats")):
        if name in _BYTES and unit == "bytes":
            moved[_BYTES[name]] += int(total or 0)
        elif name in _OPERATIONS:
            done[name] += int(count)
    for direction, total in moved.items():
        yield Sample("lustre_client_bytes_total", total, {"direction": direction})
    for operation, count in done.items():
        yield Sample("lustre_client_operations_total", count, {"operation": operation})
