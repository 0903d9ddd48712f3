"""XID errors of NVIDIA's driver in the kernel's log since boot, by GPU, code and class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from command import output_of
from gpus import Gpu, pci_address
from textfile import Sample

# health/checks/20-gpu-xid.sh has the reasons, and drains nodes by the same codes (compared in a test).
FATAL = frozenset((46, 48, 62, 64, 74, 79, 95, 119, 120, 136, 140, 143, 155, 156, 158))
# A faulty program can also cause these.
APPLICATION = frozenset((13, 31, 43, 45))
_LINE = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)(.*)")
# With this code the driver logs the recovery that it requires, and also that none is required any more.
_VERDICT = 154
_ASKED = re.compile(r"to 0x[0-9a-f]+ \((GPU Reset Required|Node Reboot Required|Drain and Reset)\)")


def xid_samples(gpus: list[Gpu]) -> Iterator[Sample]:
    """Yield the number of errors of each GPU, code and class."""
    index = {gpu.pci_address: gpu.index for gpu in gpus}
    log = output_of("journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--output=cat")
    found = Counter(
        (pci_address(pci), int(code), _class(int(code), rest)) for pci, code, rest in _LINE.findall(log)
    )
    # The driver no longer lists a GPU that has fallen off the bus, so its address is the label.
    for (pci, code, kind), errors in found.items():
        labels = {"gpu": index.get(pci, pci), "xid": str(code), "class": kind}
        yield Sample("gpu_xid_errors_total", errors, labels)


def _class(code: int, rest: str) -> str:
    if code in FATAL or (code == _VERDICT and _ASKED.search(rest)):
        return "fatal"
    return "application" if code in APPLICATION else "other"
