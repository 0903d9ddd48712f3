"""Find the slow or broken node among the nodes of a job, by all-reduces of single nodes and of pairs.

    python3 sweep.py             measures; prints a table, writes $RUN_DIR/sweep.json
    python3 sweep.py --verdict   exits with 1 if sweep.json names a node

Started by sweep.sh on the job's first node. Each measurement is a step of the job that runs train.sh on one
or two nodes, and judge.py judges its output by the family's floors. In addition, a measurement is slow below
SWEEP_SHARE of the usual one (the upper median), also where no floor is known. Three rounds:

1. each node alone: broken GPUs and NVLinks;
2. pairs of the good ones, all at once: cards, cables, switches;
3. the nodes of bad pairs, each with a node of a good pair: a node that is bad again is at fault.

Reads: what job.slurm exports; SWEEP_BYTES (size of the message, default 1G between GPUs, 16M between CPUs),
SWEEP_SHARE (default 0.8), SWEEP_LIMIT_S (default 300, of one measurement). Only the standard library.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from judge import Expected, judge, read
from trainkit.run.files import write_whole

HERE = Path(__file__).resolve().parent
AT_ONCE = 64
"""Largest number of steps that the first node starts at a time."""
_ADDRESS = re.compile(r" NodeAddr=(\S+)")


@dataclass(frozen=True)
class Measured:
    """Result of an all-reduce of one or two nodes."""

    nodes: tuple[str, ...]
    gb_per_s: float | None
    """Bus bandwidth; None if the measurement failed, or has one rank."""
    problem: str = ""
    """Sentence about the fault; empty without one."""


@dataclass(frozen=True)
class Verdict:
    """Verdict of the sweep on one node."""

    node: str
    alone: float | None
    pair: float | None
    reason: str = ""
    """Reason to drain the node; empty for a good one."""
    note: str = ""
    """Question about the node that the sweep left open."""


class Sweep:
    """The measurements of one job."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.share = float(environment.get("SWEEP_SHARE") or 0.8)
        self.limit_s = float(environment.get("SWEEP_LIMIT_S") or 300)
        self.folder = Path(environment["RUN_DIR"]) / "sweep"
        self.ranks = int(environment["NPROC_PER_NODE"])
        on_cpus = (environment.get("DEVICE") or environment["ACCELERATOR_KIND"]) not in ("gpu", "cuda")
        self.bytes = environment.get("SWEEP_BYTES") or ("16M" if on_cpus else "1G")
        self._started = 0
        self._usual: dict[int, float] = {}

    def run(self, *parts: Sequence[tuple[str, ...]]) -> list[Measured]:
        """Measure the groups of each part at once, one part after the other, and mark the slow ones of all.

        Args:
            parts: lists of groups of as many nodes, disjoint within a part.
        """
        found: list[Measured] = []
        for groups in parts:
            numbers = range(self._started, self._started + len(groups))
            self._started += len(groups)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                found += pool.map(self._measure, groups, numbers)
        return self._mark_slow(found)

    def _measure(self, nodes: tuple[str, ...], number: int) -> Measured:
        folder = self.folder / f"{number}-{'+'.join(nodes)}"
        folder.mkdir(parents=True, exist_ok=True)
        world = self.ranks * len(nodes)
        environment = {
            **self.environment,
            "RUN_DIR": str(folder),
            "LAUNCHER": "srun",
            "NNODES": str(len(nodes)),
            "EXPECTED_WORLD_SIZE": str(world),
            "MASTER_ADDR": address_of(nodes[0]),
            # Above the ports of job.slurm, below the outgoing ones.
            "MASTER_PORT": str(22000 + (int(self.environment["MASTER_PORT"]) + number) % 10000),
            "MIN_BYTES": self.bytes,
            "MAX_BYTES": self.bytes,
        }
        step = ["srun", "--overlap", "--kill-on-bad-exit=1", "--mpi=none", "--quiet", "--label"]
        step += [f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}", f"--ntasks={world}"]
        step += [f"--ntasks-per-node={self.ranks}", "bash", str(HERE / "train.sh")]
        output, late = folder / "output.log", ""
        with output.open("wb") as file:
            process = subprocess.Popen(step, env=environment, stdout=file, stderr=subprocess.STDOUT)
            try:
                status = process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                process.terminate()
                status, late = process.wait(), f"no end within {self.limit_s:g} s"
        if (status or late) and is_being_ended():
            # A verdict would name good nodes, which trainctl check-nodes drains.
            sys.exit(143)  # as a SIGTERM ends the ranks
        if late:
            return Measured(nodes, None, late)
        return self._judge(nodes, output, environment, status)

    def _judge(
        self, nodes: tuple[str, ...], output: Path, environment: Mapping[str, str], status: int
    ) -> Measured:
        logs = sorted(Path(environment["RUN_DIR"]).glob("logs/*/rank-*.log"))
        lines = (line for log in logs for line in log.read_text(errors="replace").splitlines())
        result = read(lines)
        if status or not result.rows:
            return Measured(nodes, None, f"exit code {status}: {last_words([*logs, output])}")
        problems = judge(result, Expected.from_environment(environment))
        speed = result.rows[-1].busbw_gb_per_s if self.ranks * len(nodes) > 1 else None
        return Measured(nodes, speed, problems[0].found if problems else "")

    def _mark_slow(self, found: Sequence[Measured]) -> list[Measured]:
        """Compare with the usual speed of the same number of nodes, from the first round of two groups."""
        size = len(found[0].nodes) if found else 0
        speeds = [each.gb_per_s for each in found if each.gb_per_s is not None and not each.problem]
        if len(speeds) > 1:
            self._usual.setdefault(size, statistics.median_high(speeds))
        usual = self._usual.get(size, 0.0)
        return [
            replace(each, problem=f"{each.gb_per_s:.3g} GB/s, where {usual:.3g} is usual")
            if not each.problem and each.gb_per_s is not None and each.gb_per_s < self.share * usual
            else each
            for each in found
        ]


def sweep(nodes: Sequence[str], run: Sweep) -> list[Verdict]:
    """Measure all nodes in three rounds, and judge each."""
    alone = {each.nodes[0]: each for each in run.run([(node,) for node in nodes])}
    verdicts = {
        node: Verdict(node, each.gb_per_s, None, reason=f"alone: {each.problem}" if each.problem else "")
        for node, each in alone.items()
    }
    good = [node for node in nodes if not alone[node].problem]
    # With an odd number of nodes, the last one waits for a free partner.
    last = [(good[-1], good[0])] if len(good) % 2 and len(good) > 1 else []
    pairs = run.run(list(zip(good[::2], good[1::2], strict=False)), last)
    partners = [node for each in pairs if not each.problem for node in each.nodes]
    for each in pairs:
        for node in each.nodes:
            if verdicts[node].pair is None:
                verdicts[node] = replace(verdicts[node], pair=each.gb_per_s)
    suspects = list(dict.fromkeys(node for each in pairs if each.problem for node in each.nodes))
    suspects = [node for node in suspects if node not in partners]
    first = {frozenset(each.nodes) for each in pairs}
    for node, again in _with_partners(suspects, partners, first, run).items():
        fault = next(each.problem for each in pairs if each.problem and node in each.nodes)
        if again is None:
            note = f"no good pair to compare with: {fault}"
        elif again.problem:
            why = f"with {again.nodes[1]}: {again.problem}"
            verdicts[node] = replace(verdicts[node], pair=again.gb_per_s, reason=why)
            continue
        else:
            note = f"good with {again.nodes[1]}; its first pair was not: {fault}"
        verdicts[node] = replace(verdicts[node], note=note)
    return [verdicts[node] for node in nodes]


def _with_partners(
    suspects: Sequence[str], partners: Sequence[str], first: set[frozenset[str]], run: Sweep
) -> dict[str, Measured | None]:
    """Measure each suspect with a node of a good pair, at once as far as there are partners.

    Args:
        first: the pairs of the second round; another partner is taken where there is one.
    """
    found: dict[str, Measured | None] = dict.fromkeys(suspects)
    left = list(suspects) if partners else []
    while left:
        free, batch = list(dict.fromkeys(partners)), list[tuple[str, ...]]()
        for node in left[: len(free)]:
            partner = next((each for each in free if frozenset((node, each)) not in first), free[0])
            free.remove(partner)
            batch.append((node, partner))
        for measured in run.run(batch):
            found[measured.nodes[0]] = measured
        left = left[len(batch) :]
    return found


def last_words(files: Sequence[Path]) -> str:
    """Return the last line of the first non-empty file, without lines of NCCL's log."""
    for file in files:
        lines = [line.strip() for line in file.read_text(errors="replace").splitlines()]
        if said := [line for line in lines if line and "NCCL INFO" not in line]:
            return said[-1][:200]
    return "no output"


def is_being_ended() -> bool:
    """Return True if Slurm or EC2 ends the job, whose steps then fail; this process gets no signal."""
    job = ["squeue", "--noheader", f"--jobs={os.environ['THIS_JOB']}", "--format=%T"]
    state = subprocess.run(job, capture_output=True, text=True, check=False).stdout.strip()
    nodes = ["sinfo", "--noheader", f"--nodes={os.environ['SLURM_JOB_NODELIST']}", "--format=%E"]
    reasons = subprocess.run(nodes, capture_output=True, text=True, check=False).stdout
    return state == "COMPLETING" or "EC2 takes it" in reasons


def address_of(node: str) -> str:
    """Return the address of a node: its name need not resolve where it runs on one machine with others."""
    said = subprocess.run(
        ["scontrol", "show", "node", "--oneliner", node], capture_output=True, text=True, check=True
    ).stdout
    found = _ADDRESS.search(said)
    return found[1] if found else node


def table(verdicts: Sequence[Verdict]) -> str:
    """Format the verdicts, one line a node."""
    wide = max(len(each.node) for each in verdicts)
    lines = [f"{'node':{wide}}  alone GB/s  pair GB/s  verdict"]
    for each in verdicts:
        numbers = "  ".join(
            f"{'-' if number is None else f'{number:.3g}':>{width}}"
            for number, width in ((each.alone, 10), (each.pair, 9))
        )
        verdict = "good"
        if each.reason or each.note:
            verdict = f"BAD, {each.reason}" if each.reason else f"undecided, {each.note}"
        lines.append(f"{each.node:{wide}}  {numbers}  {verdict}")
    return "\n".join(lines)


def main() -> int:
    """Sweep the job's nodes, or judge the result."""
    result = Path(os.environ["RUN_DIR"]) / "sweep.json"
    if "--verdict" in sys.argv[1:]:
        return 1 if json.loads(result.read_text(encoding="utf-8"))["nodes"] else 0
    names = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
    nodes = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()
    print(f"sweep.py: {len(nodes)} nodes alone, then in pairs", flush=True)
    verdicts = sweep(nodes, Sweep(os.environ))
    print(table(verdicts), flush=True)
    # Good nodes are left out: trainctl reads the file through Systems Manager, which cuts an answer at 24 KB.
    named = [asdict(each) for each in verdicts if each.reason or each.note]
    write_whole(result, json.dumps({"swept": len(nodes), "nodes": named}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
