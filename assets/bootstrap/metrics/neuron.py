"""Neuron devices of this node, by one report of neuron-monitor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import TIMEOUT_S
from textfile import Sample

# Two of neuron-monitor's reports, whose period neuron-monitor.json sets.
_NEURON_S = 12


@dataclass(frozen=True)
class NeuronUse:
    """Use of all devices of a node."""

    cores: dict[str, float]
    """Utilization in percent of each NeuronCore that a job uses."""
    idle_cores: int
    used_bytes: int
    size_bytes: int
    """Memory of all devices; 0 if the report has none."""

    def percents(self) -> tuple[list[float], list[float]]:
        """Return utilization of each core, and used memory, in percent."""
        busy = [*self.cores.values(), *[0.0] * self.idle_cores]
        return busy, [100 * self.used_bytes / self.size_bytes] if self.size_bytes else []


def read_neuron() -> NeuronUse:
    """Read neuron-monitor's last report; `timeout` ends the program, which never ends by itself."""
    config = str(Path(__file__).with_name("neuron-monitor.json"))
    reports = subprocess.run(
        ["timeout", str(_NEURON_S), "neuron-monitor", "--config-file", config],
        check=False,  # 124 is `timeout`'s normal exit status
        timeout=TIMEOUT_S,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    whole = [line for line in reports.splitlines(keepends=True) if line.endswith("\n")]
    if not whole:
        raise RuntimeError(f"neuron-monitor reported nothing within {_NEURON_S} s")
    return use_of(json.loads(whole[-1]))


def use_of(report: dict[str, Any]) -> NeuronUse:
    """Read a report of neuron-monitor, which lists only cores that running jobs use; others are idle."""
    hardware = report["neuron_hardware_info"]
    devices = hardware["neuron_device_count"]
    runtimes = [each.get("report") or {} for each in report.get("neuron_runtime_data") or []]
    busy: dict[str, float] = {}
    taken = 0
    for runtime in runtimes:
        cores = (runtime.get("neuroncore_counters") or {}).get("neuroncores_in_use") or {}
        for core, counters in cores.items():
            busy[core] = busy.get(core, 0.0) + counters["neuroncore_utilization"]
        used = (runtime.get("memory_used") or {}).get("neuron_runtime_used_bytes") or {}
        taken += used.get("neuron_device", used.get("device", 0))
    # A logical core may be two physical ones, by the runtime's configuration (trn2).
    cores_in_all = devices * hardware["neuroncore_per_device_count"]
    cores_in_all //= hardware.get("logical_neuroncore_config") or 1
    size = devices * (hardware.get("neuron_device_memory_size") or 0)
    return NeuronUse(busy, max(0, cores_in_all - len(busy)), taken, size)


def neuron_samples(use: NeuronUse) -> Iterator[Sample]:
    """Yield the samples of a report; idle cores, which have no number in it, get the free numbers."""
    numbers = (str(number) for number in range(len(use.cores) + use.idle_cores))
    idle = [number for number in numbers if number not in use.cores][: use.idle_cores]
    for core, percent in {**use.cores, **dict.fromkeys(idle, 0.0)}.items():
        yield Sample("neuron_core_utilization_ratio", percent / 100, {"core": core})
    yield Sample("neuron_memory_used_bytes", use.used_bytes)
    if use.size_bytes:
        yield Sample("neuron_memory_size_bytes", use.size_bytes)
