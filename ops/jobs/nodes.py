"""What Slurm says of nodes and partitions, as dataclasses. Pure: text goes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ops.printable import printable
from ops.usage import OpsError

# A reason is free text: last.
SINFO_FORMAT = "%P|%a|%T|%D|%N|%H|%E"
STATES = ("allocated", "idle", "powering_up", "powering_down", "powered_down", "down")

# sinfo's words, and the signs that stand behind a word (sinfo(1), NODE STATE CODES); counted as the dashboard
# counts them (assets/bootstrap/metrics/node_states.py).
_OFF = {"~", "powered_down"}
_STARTING = {"#", "powering_up"}
_STOPPING = {"%", "!", "powering_down", "power_down"}
_WORKING = {"allocated", "mixed", "completing"}
_WAITING = {"idle", "planned", "reserved"}
_KNOWN = _OFF | _STARTING | _STOPPING | _WORKING | _WAITING


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition, and how many of its nodes are in which of STATES."""

    name: str
    is_default: bool
    availability: str
    """up; anything else starts no jobs (down, drain, inact)."""
    nodes: Mapping[str, int]

    @property
    def size(self) -> int:
        """How many nodes it has, powered down ones included."""
        return sum(self.nodes.values())


@dataclass(frozen=True, kw_only=True)
class UnfitNodes:
    """Nodes that take no job, and why."""

    names: str
    """A host list, such as train-dy-p4d-[1-2]."""
    state: str
    since: str
    """Local time of the head node; empty when Slurm does not know."""
    reason: str


def state_of(word: str) -> str:
    """Which of STATES one of sinfo's words is.

    Down is whatever takes no job: down, drained or draining, failing, in maintenance, not responding (`*`),
    and any word that is not known here.
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


def parse_sinfo(text: str) -> tuple[tuple[Partition, ...], tuple[UnfitNodes, ...]]:
    """Read what `sinfo --all --noheader --format SINFO_FORMAT` prints. Raises OpsError."""
    counts: dict[str, Counter[str]] = {}
    availability: dict[str, str] = {}
    default, unfit = "", dict[str, UnfitNodes]()
    for line in filter(str.strip, text.splitlines()):
        parts = line.split("|", SINFO_FORMAT.count("|"))
        if len(parts) != SINFO_FORMAT.count("|") + 1 or not parts[3].strip().isdigit():
            raise OpsError(f"Slurm said of its nodes what is not understood: {line}")
        named, available, word, number, nodes, since, reason = (printable(part.strip()) for part in parts)
        name = named.removesuffix("*")
        default = name if named.endswith("*") else default
        availability[name] = available
        counts.setdefault(name, Counter())[state_of(word)] += int(number)
        # A node that is powered down may be drained as well: idle~ is well, drained~ is not.
        if nodes and ("*" in word or _base(word) not in _KNOWN):
            why = "Slurm knows no reason" if reason in ("none", "") else reason
            unfit[nodes] = UnfitNodes(
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
    return partitions, tuple(unfit.values())


def _base(word: str) -> str:
    return word.rstrip("*~#!%$@^-+").lower()
