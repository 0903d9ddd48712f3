"""Network that NCCL uses between the nodes, from its own log: recorded on each node, read after a step.

Only the standard library, and Python 3.9. Formats: NCCL 2.2x ("via NET/<network>/<device>" by a rank with a
connection to another node, "Using network <network>" and, later, "Assigned NET plugin <network> to comm" by
each rank), aws-ofi-nccl ("NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"; before 1.16
"NET/OFI Selected Provider is efa (found 4 nics)"). Libfabric sends over TCP, too, where it finds no EFA.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

TRANSPORT = re.compile(r"\bvia NET/(?:AWS )?(\w+)/")
# The recording rank may have no connection to another node, since other GPUs are closer to the cards.
CHOSEN = re.compile(r"\b(?:Using network|Assigned NET plugin) (?:AWS )?(\w+)")
NICS = re.compile(r"NET/OFI Selected [Pp]rovider is ([^\s,]+).*\(found (\d+) nics\)")
SOCKET, LIBFABRIC, EFA = "Socket", "Libfabric", "efa"
FOLDER, FILE = "network", "network.json"
STRICT, DEBUG_FILE = "STRICT_NETWORK", "NCCL_DEBUG_FILE"


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
        return sorted(host for host, taken in self.transports.items() if any(map(_is_tcp, taken)))

    @property
    def names(self) -> list[str]:
        """Transports of all hosts."""
        return sorted({name for taken in self.transports.values() for name in taken})


def record(run_dir: Path, environment: MutableMapping[str, str]) -> None:
    """Let NCCL write its choice of network into a file of this node; the user's own settings are kept.

    One rank per node calls it before the process group is made, since NCCL reads the variables once.
    """
    if int(environment.get("NNODES", "1")) < 2 or "NCCL_DEBUG" in environment:  # noqa: PLR2004
        return
    folder = _folder(run_dir, environment)
    folder.mkdir(parents=True, exist_ok=True)
    node = environment.get("SLURMD_NODENAME") or socket.gethostname()
    environment.update(
        {
            "NCCL_DEBUG": "INFO",
            "NCCL_DEBUG_SUBSYS": "INIT,NET",
            DEBUG_FILE: str(folder / f"{node}.log"),
        }
    )


def read(run_dir: Path, environment: Mapping[str, str]) -> Network:
    """Read the records of this start's nodes."""
    transports: dict[str, tuple[str, ...]] = {}
    providers: set[str] = set()
    nics: set[int] = set()
    for file in sorted(_folder(run_dir, environment).glob("*.log")):
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


def _is_tcp(transport: str) -> bool:
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


def note(run_dir: Path, network: Network, environment: Mapping[str, str]) -> None:
    """Write the network of a run, and its fault if it has one, for the report."""
    content: dict[str, Any] = {
        "transports": network.names,
        "providers": list(network.providers),
        "nics": list(network.nics),
        "hosts_on_tcp": network.on_tcp,
        "complaint": complaint(network, environment),
    }
    (run_dir / FILE).write_text(json.dumps(content) + "\n", encoding="utf-8")


def noted(run_dir: Path) -> Optional[dict[str, Any]]:  # noqa: UP045 (Python 3.9)
    """Read what `note` wrote; None without it, or if it is damaged."""
    try:
        found: dict[str, Any] = json.loads((run_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def complaint(network: Network, environment: Mapping[str, str]) -> str:
    """Return the sentence about hosts that have EFA and send over TCP; empty if there are none."""
    cards = int(environment.get("EFA_INTERFACES") or 0)
    if not cards or not network.on_tcp:
        return ""
    hosts = network.on_tcp
    named = ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")  # noqa: PLR2004
    how = ", ".join(f"NET/{name}" for name in network.names if _is_tcp(name))
    return (
        f"NCCL sends over TCP ({how}) on {named}, and these nodes have {cards} EFA card"
        f"{'s' if cards > 1 else ''} each: the training is many times slower than it could be. Submit "
        "nccl-tests, which names the cause; usual ones are a security group without a rule for itself and an "
        "aws-ofi-nccl plugin that is not found."
    )


def refusal(network: Network, environment: Mapping[str, str]) -> str:
    """Return why STRICT_NETWORK=1 ends a run: a complaint, or no line of a node; empty if it continues."""
    if not _is_strict(environment):
        return ""
    if found := complaint(network, environment):
        return found
    silent, nodes = _silent(network, environment), environment["NNODES"]
    return f"NCCL has not written which network it takes on {silent} of {nodes} nodes." if silent > 0 else ""


def waits(network: Network, environment: Mapping[str, str]) -> bool:
    """Return True if lines that are still to come may decide whether STRICT_NETWORK=1 ends a run."""
    is_undecided = _silent(network, environment) > 0 and not complaint(network, environment)
    return _is_strict(environment) and is_undecided


def _is_strict(environment: Mapping[str, str]) -> bool:
    several = int(environment.get("NNODES", "1")) > 1
    return environment.get(STRICT) == "1" and several and int(environment.get("EFA_INTERFACES") or 0) > 0


def _silent(network: Network, environment: Mapping[str, str]) -> int:
    """Return the number of nodes without a line."""
    return int(environment.get("NNODES", "1")) - len(network.transports)


def _folder(run_dir: Path, environment: Mapping[str, str]) -> Path:
    start = f"{environment.get('SLURM_JOB_ID', '0')}-{environment.get('SLURM_RESTART_COUNT', '0')}"
    return run_dir / FOLDER / start
