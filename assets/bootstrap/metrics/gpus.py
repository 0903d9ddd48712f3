"""NVIDIA GPUs of this node, by one call of nvidia-smi.

Fields and values: `nvidia-smi --help-query-gpu`. A field that a driver does not know fails the whole call, so
it is left out and the call repeated. Drivers before 535 lack the fabric and use other names for the reasons.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from command import TIMEOUT_S
from textfile import Sample

REASONS = "clocks_event_reasons.active"
_FIELDS = (
    *("index", "pci.bus_id", "name", "driver_version"),
    *("utilization.gpu", "memory.used", "memory.total", "power.draw", "enforced.power.limit"),
    *("temperature.gpu", "temperature.memory", "clocks.sm", "clocks.max.sm", REASONS),
    *("ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total"),
    *("fabric.state", "fabric.status"),
)
_UNKNOWN = re.compile(r'Field "([^"]+)" is not a valid field to query')
_MIB, _MHZ = 1 << 20, 1_000_000
_GAUGES = {
    "utilization.gpu": ("gpu_utilization_ratio", 0.01),
    "memory.used": ("gpu_memory_used_bytes", _MIB),
    "memory.total": ("gpu_memory_size_bytes", _MIB),
    "power.draw": ("gpu_power_watts", 1.0),
    "enforced.power.limit": ("gpu_power_limit_watts", 1.0),
    "temperature.gpu": ("gpu_temperature_celsius", 1.0),
    "temperature.memory": ("gpu_memory_temperature_celsius", 1.0),
    "clocks.sm": ("gpu_sm_clock_hertz", _MHZ),
    "clocks.max.sm": ("gpu_sm_clock_max_hertz", _MHZ),
}
# Bits of nvmlClocksEventReasons (nvml.h) that slow a GPU that has work.
_THROTTLES = {
    "software_power_cap": 0x04,
    "hardware_slowdown": 0x08,
    "software_thermal": 0x20,
    "hardware_thermal": 0x40,
    "power_brake": 0x80,
}


@dataclass(frozen=True)
class Gpu:
    """One GPU's fields, as nvidia-smi prints them without units."""

    fields: Mapping[str, str]

    @property
    def index(self) -> str:
        """Number of the GPU on its node."""
        return self.fields["index"]

    @property
    def pci_address(self) -> str:
        """Address in the form of the kernel's log: 0000:10:1c."""
        return pci_address(self.fields["pci.bus_id"])

    def number(self, field: str) -> float | None:
        """Return a field's number; None if this GPU or driver has none (`[N/A]`, for example under MIG)."""
        try:
            return float(self.fields.get(field, ""))
        except ValueError:
            return None


def pci_address(text: str) -> str:
    """Return a PCI address with four digits of the domain and without the function, in lower case."""
    domain, bus, device = text.lower().split(":")[:3]
    return f"{int(domain, 16):04x}:{bus}:{device.partition('.')[0]}"


def read_gpus() -> list[Gpu]:
    """Ask NVIDIA's driver.

    Raises:
        OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired: nvidia-smi is missing, failed, or
            hangs.
    """
    fields = list(_FIELDS)
    while True:
        command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        done = subprocess.run(command, check=False, timeout=TIMEOUT_S, capture_output=True, text=True)
        unknown = _UNKNOWN.search(done.stdout + done.stderr)
        if unknown and unknown[1] in fields:
            fields.remove(unknown[1])
            continue
        done.check_returncode()
        rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
        return [Gpu(dict(zip(fields, row))) for row in rows if len(row) == len(fields)]  # noqa: B905 (3.9)


def gpu_samples(gpus: list[Gpu]) -> Iterator[Sample]:
    """Yield the samples of GPUs; a field without a value has no sample."""
    for gpu in gpus:
        of_gpu = {"gpu": gpu.index}
        about = {"model": gpu.fields["name"], "driver": gpu.fields["driver_version"], "pci": gpu.pci_address}
        yield Sample("gpu_info", 1, {**of_gpu, **about})
        for field, (name, unit) in _GAUGES.items():
            value = gpu.number(field)
            if value is not None:
                yield Sample(name, value * unit, of_gpu)
        for kind in ("corrected", "uncorrected"):
            value = gpu.number(f"ecc.errors.{kind}.volatile.total")
            if value is not None:
                yield Sample("gpu_ecc_errors_total", value, {**of_gpu, "kind": kind})
        yield from _throttles(gpu)
        yield from _fabric(gpu)


def _throttles(gpu: Gpu) -> Iterator[Sample]:
    reasons = gpu.fields.get(REASONS, "")
    if re.fullmatch("0x[0-9a-fA-F]+", reasons):
        for name, bit in _THROTTLES.items():
            is_on = float(bool(int(reasons, 16) & bit))
            yield Sample("gpu_throttled", is_on, {"gpu": gpu.index, "reason": name})


def _fabric(gpu: Gpu) -> Iterator[Sample]:
    """Yield the state of the NVLink fabric; GPUs without one print N/A."""
    state, status = gpu.fields.get("fabric.state", ""), gpu.fields.get("fabric.status", "")
    if re.fullmatch("[A-Z][a-z]+( [A-Z][a-z]+)*", state):
        is_ready = state == "Completed" and status == "Success"
        yield Sample("gpu_fabric_ready", float(is_ready), {"gpu": gpu.index})
