"""Metrics of a compute node: its accelerators, and with --textfiles its links and its Lustre client, too.

    python3 compute_node.py gpu|neuron|none --cluster NAME --region REGION [--textfiles FOLDER]

CloudWatch gets utilization and used memory of the accelerators every two minutes. The same readings, and
more, go into text files for node_exporter. Called by a timer (steps/85-start-timers.sh).
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import cloudwatch
from efa import efa_samples
from gpus import Gpu, gpu_samples, read_gpus
from host import host_samples
from lustre import lustre_samples
from neuron import neuron_samples, read_neuron
from nvlink import nvlink_samples
from textfile import Reader, write_all
from xids import xid_samples

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
