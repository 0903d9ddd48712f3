"""Network that NCCL uses between the nodes, from its own log.

Only the standard library, and Python 3.9. Formats: NCCL 2.2x ("via NET/<network>/<device>" by a rank with a
connection to another node, "Using network <network>" and, later, "Assigned NET plugin <network> to comm" by
each rank), aws-ofi-nccl ("NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"; before 1.16
"NET/OFI Selected Provider is efa (found 4 nics)"). Libfabric sends over TCP, too, where it finds no EFA.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

TRANSPORT = re.compile(r"\bvia NET/(?:AWS )?(\w+)/")
# The recording rank may have no connection to another node, since other GPUs are closer to the cards.
CHOSEN = re.compile(r"\b(?:Using network|Assigned NET plugin) (?:AWS )?(\w+)")
NICS = re.compile(r"NET/OFI Selected [Pp]rovider is ([^\s,]+).*\(found (\d+) nics\)")
SOCKET, LIBFABRIC, EFA = "Socket", "Libfabric", "efa"
FILE = "network.json"


@dataclass(frozen=True)
class Network:
    """Transports that NCCL uses between nodes, and libfabric's providers, by host."""

    transports: Mapping[str, tuple[str, ...]]
    """Libfabric (EFA), "Libfabric (tcp)", Socket or IB, by host; hosts without a line are left out."""
    providers: tuple[str, ...] = ()
    nics: tuple[int, ...] = ()
    """Numbers of EFA cards that the hosts found."""

    @property
    def on_tcp(self) -> list[str]:
        """Hosts whose NCCL sends over TCP."""
        return sorted(host for host, taken in self.transports.items() if any(map(is_tcp, taken)))

    @property
    def names(self) -> list[str]:
        """Transports of all hosts."""
        return sorted({name for taken in self.transports.values() for name in taken})


def read(folder: Path) -> Network:
    """Read the records of the nodes of a start, a file each."""
    transports: dict[str, tuple[str, ...]] = {}
    providers: set[str] = set()
    nics: set[int] = set()
    for file in sorted(folder.glob("*.log")):
        taken, found = _lines(file.read_text(encoding="utf-8", errors="replace").splitlines())
        own = {provider for provider, _ in found}
        if taken:
            transports[file.stem] = tuple(sorted(_through(name, own) for name in taken))
        providers |= own
        nics |= {count for _, count in found}
    return Network(transports=transports, providers=tuple(sorted(providers)), nics=tuple(sorted(nics)))


def _through(transport: str, providers: set[str]) -> str:
    if transport != LIBFABRIC or not providers or EFA in providers:
        return transport
    return f"{LIBFABRIC} ({', '.join(sorted(providers))})"


def is_tcp(transport: str) -> bool:
    """Return True if a transport sends over TCP."""
    return transport == SOCKET or transport.startswith(f"{LIBFABRIC} (")


def _lines(lines: Iterable[str]) -> tuple[set[str], set[tuple[str, int]]]:
    taken, chosen, found = set(), set(), set()
    for line in lines:
        if match := NICS.search(line):
            found.add((match[1], int(match[2])))
        elif match := TRANSPORT.search(line):
            taken.add(match[1])
        elif match := CHOSEN.search(line):
            chosen.add(match[1])
    return taken or chosen, found


def noted(run_dir: Path) -> Optional[dict[str, Any]]:  # noqa: UP045 (Python 3.9)
    """Read what a run has noted of its network; None without it, or if it is damaged."""
    try:
        found: dict[str, Any] = json.loads((run_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found
