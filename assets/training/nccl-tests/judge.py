"""Judge the output of nccl-tests: did all ranks take part, is EFA used with all cards, is it fast enough?

    python3 judge.py LOG... [--metrics FILE]

Reads what job.slurm and the partition's settings export: NNODES, EXPECTED_WORLD_SIZE, EFA_INTERFACES (a
node), NCCL_FLOORS ("nodes:message_gib:busbw_gb_per_s ..."), PLACEMENT_GROUP (yes, no), CAPACITY,
NETWORK_GBPS, FAMILY. The logs need NCCL_DEBUG=INFO. Exits with 0 (as it should be), 1 (a verdict against it)
or 2 (no such output). Only the standard library.

Formats: nccl-tests 2.19 (src/common.cu), NCCL 2.2x ("via NET/<network>/<device>"), aws-ofi-nccl 1.16 and
newer ("NET/OFI Selected provider is efa, fabric is efa (found 4 nics)").
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Neither finish.sh nor a user who runs this sets the path of trainkit.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from trainkit.nccl import NICS, TRANSPORT
from trainkit.run.files import write_whole

_GIB = 2**30
_NUMBER = r"\d+(?:\.\d+)?"
# size count type redop root | time algbw busbw #wrong | the same in place. mpirun may put a word before it.
_ROW = re.compile(
    rf"^(?:\S+:)?\s*(?P<bytes>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+"
    rf"\s+{_NUMBER}\s+(?P<algbw>{_NUMBER})\s+(?P<busbw>{_NUMBER})\s+(?P<wrong>\d+|N/A)\s+{_NUMBER}"
)
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s+Group\s+\d+\s+Pid\s+\d+\s+on\s+(\S+)")
_CONCLUDED = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)")


@dataclass(frozen=True)
class Row:
    """Result for one message size, out of place."""

    message_bytes: int
    algbw_gb_per_s: float
    busbw_gb_per_s: float


@dataclass(frozen=True)
class Output:
    """Contents of the logs of one run."""

    rows: tuple[Row, ...]
    worlds: tuple[int, ...]
    """Number of ranks of each world that printed its devices; one number if all ranks found each other."""
    wrong: int
    is_concluded: bool
    networks: frozenset[str]
    """Transports between nodes: Libfabric (EFA), Socket, IB."""
    providers: frozenset[str]
    nics: tuple[int, ...]
    """Number of EFA cards that each reporting process found."""


@dataclass(frozen=True)
class Expected:
    """Nodes, cards and bandwidth that the job and the catalog specify."""

    nodes: int
    world_size: int
    efa_interfaces: int
    floors: tuple[tuple[int, float, float], ...] = ()
    """Floors: (nodes, message GiB, bus bandwidth in GB/s)."""
    placement_group: bool = True
    network_gbps: float = 0.0
    family: str = "this family"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Expected:
        """Read the variables that job.slurm exports. Raises KeyError outside a job."""
        # CPUs use gloo, which has no cards and no floors.
        device = environment.get("DEVICE") or environment.get("ACCELERATOR_KIND", "gpu")
        on_cpus = device not in {"gpu", "cuda"}
        written = "" if on_cpus else environment.get("NCCL_FLOORS", "")
        floors = [each.split(":") for each in written.split()]
        return cls(
            nodes=int(environment["NNODES"]),
            world_size=int(environment["EXPECTED_WORLD_SIZE"]),
            efa_interfaces=0 if on_cpus else int(environment["EFA_INTERFACES"] or 0),
            floors=tuple((int(nodes), float(gib), float(busbw)) for nodes, gib, busbw in floors),
            # The nodes of a capacity block are close together without a placement group.
            placement_group=environment.get("PLACEMENT_GROUP", "yes") == "yes"
            or environment.get("CAPACITY") == "capacity-block",
            network_gbps=float(environment.get("NETWORK_GBPS") or 0),
            family=environment.get("FAMILY", "this family"),
        )


@dataclass(frozen=True)
class Problem:
    """One fault: the observation and the remedy."""

    found: str
    mend: str


def read(lines: Iterable[str]) -> Output:
    """Read the output of all ranks, in any order."""
    rows: list[Row] = []
    worlds: list[int] = []
    wrong, is_concluded = 0, False
    networks: set[str] = set()
    providers: set[str] = set()
    nics: list[int] = []
    for line in lines:
        if match := _ROW.match(line):
            rows.append(Row(int(match["bytes"]), float(match["algbw"]), float(match["busbw"])))
        elif match := _RANK.search(line):
            if match[1] == "0":
                worlds.append(0)
            if worlds:
                worlds[-1] += 1
        elif match := _CONCLUDED.search(line):
            is_concluded = True
            wrong += int(match[1])
        elif match := NICS.search(line):
            providers.add(match[1])
            nics.append(int(match[2]))
        elif match := TRANSPORT.search(line):
            networks.add(match[1])
    rows.sort(key=lambda row: row.message_bytes)
    return Output(
        tuple(rows),
        tuple(worlds),
        wrong,
        is_concluded,
        frozenset(networks),
        frozenset(providers),
        tuple(nics),
    )


def judge(output: Output, expected: Expected) -> list[Problem]:
    """List the faults, the most important first."""
    if not output.rows or not output.is_concluded:
        return [
            Problem(
                'the test did not finish: there is no line "Out of bounds values".',
                "Look for the first error in the log; lines with `NCCL WARN` name what failed.",
            )
        ]
    if output.worlds != (expected.world_size,):
        found = " and ".join(map(str, output.worlds)) or "no"
        return [
            Problem(
                f"the ranks did not find each other: worlds of {found} ranks instead of one of "
                f"{expected.world_size}. All bandwidths here are of fewer nodes than you think.",
                "nccl-tests need MPI: a build with MPI=1, and srun --mpi=pmix.",
            )
        ]
    problems = [_corruption(output)] if output.wrong else []
    if expected.nodes > 1:
        problems += _network(output, expected) or _speed(output, expected)
    return problems


def _corruption(output: Output) -> Problem:
    return Problem(
        f"{output.wrong} values came out wrong: a GPU or a card corrupts data.",
        "Run on pairs of nodes to find it, and take it out: "
        "scontrol update nodename=NODE state=drain reason=corrupt.",
    )


def _network(output: Output, expected: Expected) -> list[Problem]:
    if not expected.efa_interfaces:
        return []
    others = sorted(output.networks - {"Libfabric"}) + sorted(output.providers - {"efa"})
    if others or "Libfabric" not in output.networks:
        seen = ", ".join(others) or "no network that it names (is NCCL_DEBUG=INFO set?)"
        return [
            Problem(
                f"EFA unused: NCCL goes through {seen}, which costs most of the bandwidth.",
                "Look at `fi_info -p efa` on a node, and for /opt/amazon/ofi-nccl/lib in LD_LIBRARY_PATH.",
            )
        ]
    if not output.nics or min(output.nics) < expected.efa_interfaces:
        least = min(output.nics, default=0)
        return [
            Problem(
                f"cards missing: a process found {least} EFA cards, and a node of {expected.family} has "
                f"{expected.efa_interfaces}.",
                "Look at `fi_info -p efa -t FI_EP_RDM` on each node; replace one that lacks a card: "
                "scontrol update nodename=NODE state=power_down_force.",
            )
        ]
    return []


def _speed(output: Output, expected: Expected) -> list[Problem]:
    slow = [(row, floor) for row, floor in judged(output, expected) if row.busbw_gb_per_s < floor]
    if not slow:
        return []
    row, floor = slow[-1]
    found = (
        f"too slow: {row.busbw_gb_per_s:g} GB/s at {size(row.message_bytes)}; {expected.nodes} nodes of "
        f"{expected.family} give {floor:g} at least."
    )
    if not expected.placement_group:
        return [Problem(f"{found} They have no placement group.", "Use one, or a capacity block.")]
    return [
        Problem(
            f"{found} EFA and all its cards are in use.",
            "Look for one slow node: run on pairs of them (sbatch --nodelist=A,B).",
        )
    ]


def judged(output: Output, expected: Expected) -> list[tuple[Row, float]]:
    """Pair the sizes that have a floor (GB/s) for exactly this number of nodes with that floor."""
    floors = {round(gib * _GIB): busbw for nodes, gib, busbw in expected.floors if nodes == expected.nodes}
    return [(row, floors[row.message_bytes]) for row in output.rows if row.message_bytes in floors]


def describe(output: Output, expected: Expected) -> str:
    """Return one line with the bandwidth reached and its floor."""
    best = max(output.rows, key=lambda row: row.busbw_gb_per_s)
    reached = f"{best.busbw_gb_per_s:g} GB/s at {size(best.message_bytes)}"
    said = f"{expected.nodes} nodes, {expected.world_size} ranks: {reached}"
    if compared := judged(output, expected):
        row, floor = compared[-1]
        measured = f"{row.busbw_gb_per_s:g} at {size(row.message_bytes)}"
        return f"{said}; measured {measured}, where the floor is {floor:g}"
    said += f"; no floor is known for {expected.nodes} nodes of {expected.family}"
    if expected.network_gbps and expected.nodes > 1:
        line_rate = expected.network_gbps / 8
        said += f" (line rate {line_rate:g} GB/s a node, which two nodes can exceed)"
    return said


def size(message_bytes: int) -> str:
    """Format the size of a message with its unit."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if message_bytes >= 1 << shift:
            return f"{message_bytes / (1 << shift):g} {unit}"
    return f"{message_bytes} B"


def write_metrics(output: Output, file: Path, world_size: int) -> None:
    """Write metrics.jsonl, a line for each message size."""
    rows = [
        {
            "step": step,
            "message_bytes": row.message_bytes,
            "algbw_gb_per_s": row.algbw_gb_per_s,
            "busbw_gb_per_s": row.busbw_gb_per_s,
            "world_size": world_size,
        }
        for step, row in enumerate(output.rows, start=1)
    ]
    write_whole(file, "".join(json.dumps(row) + "\n" for row in rows))


def _lines(logs: Sequence[Path]) -> Iterable[str]:
    for log in logs:
        with log.open(encoding="utf-8", errors="replace") as file:
            yield from file


def main() -> int:
    """Judge the logs; print one line, or the faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="output of all_reduce_perf")
    parser.add_argument("--metrics", type=Path, help="also write metrics.jsonl here")
    arguments = parser.parse_args()
    if missing := [str(log) for log in arguments.logs if not log.is_file()]:
        print(f"judge.py: there is no file {', '.join(missing)}", file=sys.stderr)
        return 2
    try:
        expected = Expected.from_environment(os.environ)
    except KeyError as missing_name:
        print(
            f"judge.py: {missing_name} is not set: it is the job's. By hand: NNODES=2 EXPECTED_WORLD_SIZE=16 "
            "EFA_INTERFACES=4 NCCL_FLOORS='2:1:41' python3 judge.py LOG",
            file=sys.stderr,
        )
        return 2
    output = read(_lines(arguments.logs))
    problems = judge(output, expected)
    if output.rows and arguments.metrics and len(output.worlds) == 1:
        write_metrics(output, arguments.metrics, output.worlds[0])
    for problem in problems:
        print(f"judge.py: {problem.found}\n  {problem.mend}", file=sys.stderr)
    if problems:
        return 1
    print(f"all-reduce as it should be: {describe(output, expected)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
