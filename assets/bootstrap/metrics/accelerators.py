"""Metrics of this node's accelerators: utilization and used memory, in percent.

    python3 accelerators.py gpu|neuron --cluster NAME --region REGION

Runs once a minute on compute nodes with accelerators (steps/85-start-timers.sh).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudwatch

UTILIZATION, MEMORY = "AcceleratorUtilization", "AcceleratorMemoryUsed"
# Two of neuron-monitor's reports, whose period neuron-monitor.json sets.
_NEURON_S = 12

Use = tuple[list[float], list[float]]
"""Utilization and used memory in percent: of each GPU, or of each NeuronCore and each device."""


def read_gpus() -> Use:
    """Ask NVIDIA's driver. A GPU without a value (`[N/A]`, for example under MIG) is left out."""
    lines = subprocess.run(
        [
            "nvidia-smi",
            "--query-gpu=utilization.gpu,memory.used,memory.total",
            "--format=csv,noheader,nounits",
        ],
        check=True,
        timeout=cloudwatch.TIMEOUT_S,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    busy: list[float] = []
    memory: list[float] = []
    for line in lines.splitlines():
        used_percent, used_mib, total_mib = (each.strip() for each in line.split(","))
        if used_percent.isdigit():
            busy.append(float(used_percent))
        if used_mib.isdigit() and total_mib.isdigit():
            memory.append(100 * int(used_mib) / int(total_mib))
    return busy, memory


def read_neuron() -> Use:
    """Read neuron-monitor's last report; `timeout` ends the program, which never ends by itself."""
    config = str(Path(__file__).with_name("neuron-monitor.json"))
    reports = subprocess.run(
        ["timeout", str(_NEURON_S), "neuron-monitor", "--config-file", config],
        check=False,  # 124 is `timeout`'s normal exit status
        timeout=cloudwatch.TIMEOUT_S,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    whole = [line for line in reports.splitlines(keepends=True) if line.endswith("\n")]
    if not whole:
        raise SystemExit(f"neuron-monitor reported nothing within {_NEURON_S} s")
    return use_of(json.loads(whole[-1]))


def use_of(report: dict[str, Any]) -> Use:
    """Read a report of neuron-monitor, which lists only cores that running jobs use; others are idle."""
    hardware = report["neuron_hardware_info"]
    devices = hardware["neuron_device_count"]
    runtimes = [each.get("report") or {} for each in report.get("neuron_runtime_data") or []]
    busy: dict[str, float] = {}
    taken = 0.0
    for runtime in runtimes:
        cores = (runtime.get("neuroncore_counters") or {}).get("neuroncores_in_use") or {}
        for core, counters in cores.items():
            busy[core] = busy.get(core, 0.0) + counters["neuroncore_utilization"]
        used = (runtime.get("memory_used") or {}).get("neuron_runtime_used_bytes") or {}
        taken += used.get("neuron_device", used.get("device", 0))
    # A logical core may be two physical ones, by the runtime's configuration (trn2).
    cores_in_all = devices * hardware["neuroncore_per_device_count"]
    cores_in_all //= hardware.get("logical_neuroncore_config") or 1
    idle = [0.0] * max(0, cores_in_all - len(busy))
    memory = hardware.get("neuron_device_memory_size")
    return [*busy.values(), *idle], [100 * taken / (devices * memory)] if devices and memory else []


READERS: dict[str, Callable[[], Use]] = {"gpu": read_gpus, "neuron": read_neuron}

if __name__ == "__main__":
    asked = cloudwatch.arguments("kind")
    percent_busy, percent_taken = READERS[asked.kind]()
    cloudwatch.publish(
        [
            cloudwatch.Metric(UTILIZATION, percent_busy, "Percent"),
            cloudwatch.Metric(MEMORY, percent_taken, "Percent"),
        ],
        cluster=asked.cluster,
        region=asked.region,
    )
