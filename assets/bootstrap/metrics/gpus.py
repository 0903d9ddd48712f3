"""NVIDIA GPUs of this node: nvidia-smi, their NVLinks and their errors in the kernel's log.

Fields and values: `nvidia-smi --help-query-gpu`. A field that a driver does not know fails the whole call, so
it is left out and the call repeated. Drivers before 535 lack the fabric and use other names for the reasons.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from command import TIMEOUT_S, output_of
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


_LINKS_OF = re.compile(r"GPU (\d+):")
_LINK_DATA = re.compile(r"Link \d+: Data (Tx|Rx): (\d+) KiB")
_LINK_ERRORS = re.compile(r"Link \d+: (Replay|Recovery|CRC)\b[^:]*: (\d+)$")
_KIB = 1024


def nvlink_samples() -> Iterator[Sample]:
    """Yield traffic and errors of each GPU's NVLinks; GPUs without NVLink have no lines."""
    for (gpu, direction), kib in _sums(output_of("nvidia-smi", "nvlink", "-gt", "d"), _LINK_DATA).items():
        yield Sample("gpu_nvlink_bytes_total", kib * _KIB, {"gpu": gpu, "direction": direction})
    for (gpu, kind), errors in _sums(output_of("nvidia-smi", "nvlink", "-e"), _LINK_ERRORS).items():
        yield Sample("gpu_nvlink_errors_total", errors, {"gpu": gpu, "kind": kind})


def _sums(text: str, value: re.Pattern[str]) -> Counter[tuple[str, str]]:
    """Add up the values of each GPU's links by their names."""
    sums: Counter[tuple[str, str]] = Counter()
    gpu = ""
    for line in text.splitlines():
        if begun := _LINKS_OF.match(line):
            gpu = begun[1]
        elif found := value.search(line.strip()):
            sums[gpu, found[1].lower()] += int(found[2])
    return sums


# The check that drains nodes by the same codes, and has the reasons.
_CHECK = (Path(__file__).parents[1] / "health" / "checks" / "20-gpu-xid.sh").read_text(encoding="utf-8")
FATAL = frozenset(map(int, re.findall(r"^  \[(\d+)\]=", _CHECK, re.MULTILINE)))
# A faulty program can also cause these.
APPLICATION = frozenset((13, 31, 43, 45))
_XID_LINE = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(.*)")
# With this code the driver logs the recovery that it requires, and also that none is required any more.
_RECOVERY_CODE = 154
_REQUIRED_RECOVERY = re.compile(*re.findall(r"^readonly ASKED='(.+)'$", _CHECK, re.MULTILINE))


def xid_samples(gpus: list[Gpu]) -> Iterator[Sample]:
    """Yield the number of XID errors in the kernel's log since boot, by GPU, code and class."""
    index = {gpu.pci_address: gpu.index for gpu in gpus}
    log = output_of("journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--output=cat")
    found = Counter(
        (pci_address(pci), int(code), _class(int(code), rest)) for pci, code, rest in _XID_LINE.findall(log)
    )
    # The driver no longer lists a GPU that has fallen off the bus, so its address is the label.
    for (pci, code, kind), errors in found.items():
        labels = {"gpu": index.get(pci, pci), "xid": str(code), "class": kind}
        yield Sample("gpu_xid_errors_total", errors, labels)


def _class(code: int, rest: str) -> str:
    if code in FATAL or (code == _RECOVERY_CODE and _REQUIRED_RECOVERY.search(rest)):
        return "fatal"
    return "application" if code in APPLICATION else "other"
