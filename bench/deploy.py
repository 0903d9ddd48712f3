"""The time of a deploy and its causes: the templates' critical path, and a deploy to the local AWS."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from bench.measuring.result import Bar, Bars, Result, Row
from bench.measuring.timing import BaselineError, run
from bench.subjects.critical_path import GraphError, Resource, Step, critical_path, read_assembly
from bench.subjects.provider import MARKER, case, count_calls, create_each
from rehearsal.account import local_account
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

TITLE = "cdk deploy: its critical path, and its calls"
TIMES = ROOT / "bench" / "creation_times.yaml"
IDEAL_GOAL, BY_HAND_GOAL, GROWTH_GOAL = 1.1, 1.0, 2.0
QUEUES = (1, 2, 4, 8)
# Each queue has another family, so that no cached answer of AWS serves two.
FAMILIES = ("p4d", "p5", "g5", "g6", "trn1", "m6i", "m7i", "r7iz")
_SHOWN_S = 60
"""Seconds below which steps are summed up in the picture, one bar per stack."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """The content of creation_times.yaml."""

    seconds: Mapping[str, float]
    """Creation time of each resource type."""
    otherwise_s: float
    by_hand: Sequence[str]
    """Resource types, in the order in which they are created by hand."""
    reasons: Sequence[Mapping[str, str]]
    """`waits` and `for` (types, `*` for any) and `why`."""

    def seconds_of(self, type_: str) -> float:
        """Return the creation time of a resource type, in seconds."""
        return self.seconds.get(type_, self.otherwise_s)

    def why(self, waiting: Resource, other: Resource) -> str:
        """Return the reason of an edge that is not a reference; empty if there is none."""
        for each in self.reasons:
            if each["waits"] in {waiting.type, "*"} and each["for"] in {other.type, "*"}:
                return each["why"]
        return ""


def read_times() -> Times:
    """Read the table of creation times."""
    content = yaml.safe_load(TIMES.read_text(encoding="utf-8"))
    return Times(
        seconds={name: each["seconds"] for name, each in content["types"].items()},
        otherwise_s=content["otherwise_s"],
        by_hand=content["by_hand"],
        reasons=content["reasons"],
    )


def measure() -> Result:
    """Measure the critical path of the templates, then a deploy and creates with more and more queues."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _synth(folder / "cdk.out")
        try:
            paths = _paths(read_assembly(folder / "cdk.out"), read_times())
            deployed, calls = _deploy(folder / "account"), _calls(folder / "aws")
        except (GraphError, RehearsalError) as error:
            raise BaselineError(str(error)) from error
    return Result(
        rows=[*paths.rows, *_rehearsed_rows(deployed, calls)],
        figures={**paths.figures, "rehearsed": deployed, "calls_by_queues": calls},
        picture=Bars(
            title=f"A first deploy, {paths.minutes:.1f} min: what it waits for, one after the other",
            x_label="minutes (published times and estimates, not measured)",
            bars=_bars(paths.path),
        ),
        notes=[
            *paths.notes,
            "The rehearsed deploy is the real CDK CLI, the real provider and the real library on the local "
            "AWS, where nothing takes the time that it takes on AWS: seconds and calls show what a change "
            "of the code adds. The queues are of as many families; the calls are those up to the upload of "
            "the cluster's templates, CloudFormation's own not among them.",
        ],
    )


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The critical path of the templates, with its rows, figures and notes."""

    path: Sequence[Step]
    rows: Sequence[Row]
    figures: Mapping[str, Any]
    notes: Sequence[str]

    @property
    def minutes(self) -> float:
        """Minutes of a first deploy."""
        return self.path[-1].ends_s / 60


def _paths(resources: Mapping[str, Resource], times: Times) -> Paths:
    table: dict[str, Any] = {"seconds": times.seconds, "otherwise_s": times.otherwise_s}
    path = critical_path(resources, **table)
    ideal = critical_path(resources, **table, kinds=("reference",))[-1].ends_s
    no_barrier = critical_path(resources, **table, kinds=("reference", "explicit"))[-1].ends_s
    by_hand = sum(times.seconds_of(type_) for type_ in times.by_hand)
    whole = path[-1].ends_s
    edges = [
        (before, step, times.why(step.resource, before.resource))
        for before, step in itertools.pairwise(path)
        if step.after == "explicit"
    ]
    explained = [
        f"{step.resource.type} for {before.resource.type}: {why or 'no reason'}"
        for before, step, why in edges
    ]
    idle = [f"{step.resource.name} for {before.resource.name}" for before, step, why in edges if not why]
    return Paths(
        path=path,
        rows=[
            Row(name="critical path of a first deploy", measured=f"{whole / 60:.1f} min"),
            _at_most("critical path, against references alone", whole / ideal, IDEAL_GOAL),
            Row(
                name="explicit waits on it that need not be there",
                goal="0",
                measured=f"{len(idle)} of {len(edges)}" + (f": {'; '.join(idle)}" if idle else ""),
                verdict="missed" if idle else "met",
            ),
            _at_most("critical path, against the seeds' order by hand", whole / by_hand, BY_HAND_GOAL),
        ],
        figures={
            "seconds": {"deploy": whole, "references": ideal, "one stack": no_barrier, "by hand": by_hand},
            "path": [
                {
                    "resource": step.resource.name,
                    "type": step.resource.type,
                    "takes_s": step.duration_s,
                    "ends_s": step.ends_s,
                    "after": step.after,
                }
                for step in path
            ],
        },
        notes=[
            "Minutes are the sum of creation times that others published, and of estimates "
            "(bench/creation_times.yaml names each source); not run on real AWS. The chain: "
            f"{_chain(path)}.",
            "References alone, as if every resource began when the values that it uses are there: "
            f"{ideal / 60:.1f} min. The stacks cost {(whole - no_barrier) / 60:.1f} min of it: the "
            "CDK deploys StorageStack when all of NetworkStack is there (its NAT gateway too), and the "
            "cluster when all of StorageStack is (the data repository associations too). They are three so "
            "that `cdk destroy` of a cluster cannot touch data.",
            "Waits that are no reference: "
            + "; ".join(f"{each} ({number}x)" for each, number in Counter(explained).items())
            + ".",
            f"By hand: {by_hand / 60:.1f} min, in the order of the tutorials (network, bucket and file "
            "systems, key and policies, cluster), what is of one kind at once, without a second between two "
            "commands.",
        ],
    )


def _at_most(name: str, ratio: float, goal: float) -> Row:
    met = ratio <= goal
    return Row(name=name, goal=f"<= {goal:g}x", measured=f"{ratio:.2f}x", verdict="met" if met else "missed")


def _parts(path: Sequence[Step]) -> list[tuple[str, float]]:
    """Return names and seconds: long steps by their type, and the short ones between them by stack."""

    def part(step: Step) -> str:
        kind = step.resource.type.rpartition("::")[2]
        return kind if step.duration_s >= _SHOWN_S else f"{step.resource.stack}: small ones"

    return [
        (name, sum(step.duration_s for step in steps)) for name, steps in itertools.groupby(path, key=part)
    ]


def _chain(path: Sequence[Step]) -> str:
    return ", ".join(f"{name} {seconds / 60:.1f}" for name, seconds in _parts(path))


def _bars(path: Sequence[Step]) -> list[Bar]:
    summed: dict[str, float] = {}
    for name, seconds in _parts(path):
        summed[name] = summed.get(name, 0) + seconds / 60
    return [Bar(name=name, median=minutes, low=minutes, high=minutes) for name, minutes in summed.items()]


def _synth(output: Path) -> None:
    environment = {**os.environ, "PATH": f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"}
    run(["cdk", "synth", "--quiet", "--output", output], cwd=ROOT, environment=environment)


def _deploy(folder: Path) -> dict[str, float]:
    """Return the seconds and AWS calls of `cdk deploy`. Raises RehearsalError."""
    silent = Narrator(Console(quiet=True))
    with local_account(folder, marker=(MARKER, str(folder)), narrator=silent) as account:
        before, began = count_calls(account.address), time.perf_counter()
        account.cdk.run(
            "deploy", "TrainingClusterStack", "--require-approval", "never", output=folder / "cdk.out"
        )
        seconds = time.perf_counter() - began
        return {"seconds": round(seconds, 1), "calls": count_calls(account.address) - before}


def _calls(folder: Path) -> dict[int, int]:
    """Return the AWS calls of a create, by number of queues. Raises RehearsalError."""
    wanted = [[case(family=family) for family in FAMILIES[:queues]] for queues in QUEUES]
    made = create_each(wanted, folder=folder)
    return {queues: each.calls for queues, each in zip(QUEUES, made, strict=True)}


def growth(calls: Mapping[int, int]) -> float:
    """Return the ratio of the calls that the last two doublings of queues add; 2 is linear growth."""
    first, second, last = sorted(calls)[-3:]
    return (calls[last] - calls[second]) / max(1, calls[second] - calls[first])


def _rehearsed_rows(deployed: Mapping[str, float], calls: Mapping[int, int]) -> list[Row]:
    least, most = min(calls), max(calls)
    each = (calls[most] - calls[least]) / (most - least)
    found = ", ".join(f"{queues}: {number}" for queues, number in calls.items())
    return [
        Row(
            name="rehearsed deploy",
            measured=f"{deployed['seconds']:.0f} s, {deployed['calls']:.0f} AWS calls",
        ),
        Row(
            name="AWS calls of the library for a cluster, by queues",
            measured=f"{found} ({each:.1f} a queue)",
        ),
        _at_most(
            "calls that the last doubling of queues adds, against the one before", growth(calls), GROWTH_GOAL
        ),
    ]
