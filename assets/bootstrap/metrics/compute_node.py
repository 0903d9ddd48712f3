"""Metrics of a compute node: its accelerators, and with --textfiles its links and its Lustre client, too.

    python3 compute_node.py gpu|neuron|none --cluster NAME --region REGION [--textfiles FOLDER]

CloudWatch gets utilization and used memory of the accelerators every two minutes. The same readings, and
more, go into text files for node_exporter. Called by a timer (steps/85-start-timers.sh).
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cloudwatch
from command import output_of
from gpus import Gpu, gpu_samples, nvlink_samples, read_gpus, xid_samples
from host import host_samples
from neuron import neuron_samples, read_neuron
from textfile import Reader, Sample, write_all

UTILIZATION, MEMORY = "AcceleratorUtilization", "AcceleratorMemoryUsed"

Use = tuple[list[float], list[float]]
"""Utilization and used memory in percent: of each GPU, or of each NeuronCore and of all devices."""

# Read once for both stores.
gpus = functools.cache(read_gpus)
neuron = functools.cache(read_neuron)


def use_of_gpus(found: list[Gpu]) -> Use:
    """Return the use of the GPUs that have values."""
    busy = [value for gpu in found if (value := gpu.number("utilization.gpu")) is not None]
    memory = [
        100 * used / total
        for gpu in found
        if (used := gpu.number("memory.used")) is not None and (total := gpu.number("memory.total"))
    ]
    return busy, memory


_EFA_DEVICES = Path(os.environ.get("TRAINING_ROOT") or "/") / "sys" / "class" / "infiniband"
# A setting of the kernel's cache of the counters, not a counter.
_EFA_SETTING = "lifespan"
_EFA_ERRORS = ("drops", "err", "_events", "retrans_pkts")


def efa_samples() -> Iterator[Sample]:
    """Yield the kernel's counters, such as tx_bytes and, of newer cards, retrans_pkts; none without EFA.

    A node has up to 32 devices with two dozen counters each: a counter is one sample, summed over the
    devices, and only errors of a device are a sample of their own.
    """
    sums: Counter[str] = Counter()
    for file in sorted(_EFA_DEVICES.glob("*/ports/*/hw_counters/*")):
        if file.name != _EFA_SETTING:
            value = int(file.read_text(encoding="ascii"))
            sums[file.name] += value
            if value and file.name.endswith(_EFA_ERRORS):
                labels = {"device": file.parents[3].name, "counter": file.name}
                yield Sample("efa_device_errors_total", value, labels)
    for counter, value in sums.items():
        yield Sample("efa_hw_counter_total", value, {"counter": counter})


# NAME COUNT samples [UNIT] and, for bytes, MIN MAX SUM SUM_OF_SQUARES.
_SAMPLES = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\](?: \d+ \d+ (\d+))?", re.MULTILINE)
_LUSTRE_BYTES = {"read_bytes": "read", "write_bytes": "write"}
# The kinds that show whether metadata is the limit.
_LUSTRE_OPERATIONS = ("open", "close", "getattr", "mkdir", "unlink", "rename")


def lustre_samples() -> Iterator[Sample]:
    """Yield bytes and operations of all of the node's Lustre mounts together, by its client's statistics."""
    if not shutil.which("lctl"):
        return
    moved: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for name, count, unit, total in _SAMPLES.findall(output_of("lctl", "get_param", "-n", "llite.*.stats")):
        if name in _LUSTRE_BYTES and unit == "bytes":
            moved[_LUSTRE_BYTES[name]] += int(total or 0)
        elif name in _LUSTRE_OPERATIONS:
            done[name] += int(count)
    for direction, total in moved.items():
        yield Sample("lustre_client_bytes_total", total, {"direction": direction})
    for operation, count in done.items():
        yield Sample("lustre_client_operations_total", count, {"operation": operation})


def readers(kind: str) -> dict[str, Reader]:
    """Return the readers of a node's text files."""
    of_all: dict[str, Reader] = {"host": host_samples, "efa": efa_samples, "lustre": lustre_samples}
    of_kind: dict[str, dict[str, Reader]] = {
        "gpu": {
            "gpu": lambda: gpu_samples(gpus()),
            "nvlink": nvlink_samples,
            "xid": lambda: xid_samples(gpus()),
        },
        "neuron": {"neuron": lambda: neuron_samples(neuron())},
        "none": {},
    }
    return {**of_kind[kind], **of_all}


def main() -> int:
    """Write and publish; return 1 if a reader failed."""
    asked = cloudwatch.parser("kind").parse_args()
    is_complete = write_all(Path(asked.textfiles), readers(asked.kind)) if asked.textfiles else True
    if asked.kind != "none" and cloudwatch.is_due(asked):
        busy, taken = use_of_gpus(gpus()) if asked.kind == "gpu" else neuron().percents()
        cloudwatch.publish(
            [
                cloudwatch.Metric(UTILIZATION, busy, "Percent"),
                cloudwatch.Metric(MEMORY, taken, "Percent"),
            ],
            cluster=asked.cluster,
            region=asked.region,
        )
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
