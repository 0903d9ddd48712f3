"""Parses sinfo's nodes and partitions into dataclasses. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ops.printable import printable
from ops.usage import OpsError

# The reason comes last because it is free text.
SINFO_FORMAT = "%P|%a|%T|%D|%N|%H|%E"
STATES = ("allocated", "idle", "powering_up", "powering_down", "powered_down", "down")

# sinfo's states and their suffixes (sinfo(1), NODE STATE CODES), grouped as on the dashboard
# (assets/bootstrap/metrics/slurm_nodes.py).
_OFF = {"~", "powered_down"}
_STARTING = {"#", "powering_up"}
_STOPPING = {"%", "!", "powering_down", "power_down"}
_WORKING = {"allocated", "mixed", "completing"}
_WAITING = {"idle", "planned", "reserved"}
_KNOWN = _OFF | _STARTING | _STOPPING | _WORKING | _WAITING


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition, with the number of its nodes in each of STATES."""

    name: str
    is_default: bool
    availability: str
    """State of the partition: up, or one in which it starts no jobs (down, drain, inact)."""
    nodes: Mapping[str, int]

    @property
    def size(self) -> int:
        """Number of nodes, including powered down ones."""
        return sum(self.nodes.values())


@dataclass(frozen=True, kw_only=True)
class UnavailableNodes:
    """Nodes that accept no jobs, with the reason."""

    names: str
    """Host list of the nodes, such as train-dy-p4d-[1-2]."""
    state: str
    since: str
    """Local time of the head node; empty if Slurm does not know it."""
    reason: str


def state_of(word: str) -> str:
    """Map a state of sinfo to one of STATES.

    Every state in which a node accepts no jobs is "down": down, drained or draining, failing, in maintenance,
    not responding (`*`), and every unknown state.
    """
    base = _base(word)
    signs = {*word[len(base) :], base}
    if signs & _OFF:
        return "powered_down"
    if "*" in signs or base not in _KNOWN:
        return "down"
    if signs & _STARTING:
        return "powering_up"
    if signs & _STOPPING:
        return "powering_down"
    return "allocated" if base in _WORKING else "idle"


def parse_sinfo(text: str) -> tuple[tuple[Partition, ...], tuple[UnavailableNodes, ...]]:
    """Parse the output of `sinfo --all --noheader --format SINFO_FORMAT`. Raises OpsError."""
    counts: dict[str, Counter[str]] = {}
    availability: dict[str, str] = {}
    default, unavailable = "", dict[str, UnavailableNodes]()
    for line in filter(str.strip, text.splitlines()):
        parts = line.split("|", SINFO_FORMAT.count("|"))
        if len(parts) != SINFO_FORMAT.count("|") + 1 or not parts[3].strip().isdigit():
            raise OpsError(f"sinfo printed a line that trainctl cannot parse: {line}")
        named, available, word, number, nodes, since, reason = (printable(part.strip()) for part in parts)
        name = named.removesuffix("*")
        default = name if named.endswith("*") else default
        availability[name] = available
        counts.setdefault(name, Counter())[state_of(word)] += int(number)
        # A powered down node may be drained, too: idle~ accepts jobs, drained~ does not.
        if nodes and ("*" in word or _base(word) not in _KNOWN):
            why = "Slurm gives no reason" if reason in ("none", "") else reason
            unavailable[nodes] = UnavailableNodes(
                names=nodes, state=word, since="" if since == "Unknown" else since, reason=why
            )
    partitions = tuple(
        Partition(
            name=name,
            is_default=name == default,
            availability=availability[name],
            nodes={state: found[state] for state in STATES},
        )
        for name, found in counts.items()
    )
    return partitions, tuple(unavailable.values())


def _base(word: str) -> str:
    return word.rstrip("*~#!%$@^-+").lower()
