"""The time of a deploy and its causes: the templates' critical path, and a deploy to the local AWS."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measuring.result import Bar, Bars, Result, Row
from bench.measuring.timing import BaselineError, run
from bench.subjects.creation_times import Times, read_times
from bench.subjects.critical_path import GraphError, Resource, Step, critical_path, read_assembly
from bench.subjects.cuts import CUTS, cut
from bench.subjects.deploys import Deploy, deploy_three
from bench.subjects.provider import case, create_each
from bench.subjects.waits import Kind, chain, read_parts, total_s
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

TITLE = "cdk deploy: its critical path, and its calls"
IDEAL_GOAL, BY_HAND_GOAL, GROWTH_GOAL = 1.1, 1.0, 2.0
QUEUES = (1, 2, 4, 8)
# Each queue has another family, so that no cached answer of AWS serves two.
FAMILIES = ("p4d", "p5", "g5", "g6", "trn1", "m6i", "m7i", "r7iz")
_UPDATES: dict[str, Kind] = {"An update of one flag": "flag", "An update after a changed script": "script"}
_SHOWN_S = 60
"""Seconds below which steps are summed up in the picture, one bar per stack."""


def measure() -> Result:
    """Measure the critical path of the templates, then a deploy and creates with more and more queues."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _synth(folder / "cdk.out")
        try:
            paths = _paths(read_assembly(folder / "cdk.out"), read_times())
            deploys, calls = deploy_three(folder / "account"), _calls(folder / "aws")
        except (GraphError, RehearsalError) as error:
            raise BaselineError(str(error)) from error
    return Result(
        rows=[*paths.rows, *_update_rows(), *_deploy_rows(deploys), *_call_rows(calls)],
        figures={
            **paths.figures,
            "rehearsed": {name: asdict(each) for name, each in deploys.items()},
            "calls_by_queues": calls,
        },
        picture=Bars(
            title=f"A first deploy, {paths.minutes:.1f} min: its critical path",
            x_label="minutes (published times and estimates, not measured)",
            bars=_bars(paths.path),
        ),
        notes=[
            *paths.notes,
            *(f"{title}: {chain(read_parts(kind))}." for title, kind in _UPDATES.items()),
            "bench/waits.yaml names the source of each part. Until 2026-11-24 the provider polled every "
            "30 s, and noticed the end of an update 15 s late on average. It now polls every 10 s, and is "
            "5 s late on average.",
            "A rehearsed deploy runs the real CDK CLI, the real provider and the real library against the "
            "local AWS. Nothing there takes as long as on AWS, so the seconds and calls only show what a "
            "change of the code adds. The number of calls grows with the seconds, because the CDK CLI and "
            "ParallelCluster's own functions poll. The update of one flag changes nodes=2 to nodes=3. The "
            "update after a changed script adds a comment to one bootstrap step. In the rows of queues, each "
            "queue has a different family. Their calls are counted up to the upload of the cluster's "
            "templates, and exclude CloudFormation's own calls.",
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
        f"`{step.resource.type}` waits for `{before.resource.type}`: {why or 'no reason'}"
        for before, step, why in edges
    ]
    idle = [f"{step.resource.name} for {before.resource.name}" for before, step, why in edges if not why]
    return Paths(
        path=path,
        rows=[
            Row(name="critical path of a first deploy", measured=f"{whole / 60:.1f} min"),
            _at_most("critical path, against references alone", whole / ideal, IDEAL_GOAL),
            *_cut_rows(resources, table, ideal),
            Row(
                name="unnecessary explicit waits on it",
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
            "This did not run on real AWS. The minutes are sums of published creation times and of "
            "estimates; bench/creation_times.yaml names the source of each. The critical path, in minutes: "
            f"{_chain(path)}.",
            f"With references alone, a deploy takes {ideal / 60:.1f} min: each resource starts as soon as "
            f"the values that it uses exist. The order of the stacks adds {(whole - no_barrier) / 60:.1f} "
            "min. The CDK deploys StorageStack after all of NetworkStack, including its NAT gateway, and "
            "the cluster after all of StorageStack, including the data repository associations. There are "
            "three stacks so that `cdk destroy` of a cluster cannot touch data.",
            "The app makes none of the further cuts ([ADR 42](adr/0042-stacks-not-cut-further.md)). `npx "
            "cdk deploy TrainingClusterStack` deploys only the stacks that this stack depends on. Data "
            "repository associations in a separate stack would silently be left out, and checkpoints would "
            "not be exported. An update of an existing deployment would replace the moved NAT gateway, "
            "which changes its address. All three cuts together would still miss the goal. The figure of "
            "2026-11-22, 24.8 min (1.47x), created both associations at the same time, which FSx may "
            "refuse ([ADR 10](adr/0010-two-associations.md)).",
            "Resources on the critical path that wait for another without a reference to it:\n\n"
            + "\n".join(f"- {each} ({number}x)" for each, number in Counter(explained).items()),
            f"By hand: {by_hand / 60:.1f} min, in the order of the tutorials (network, bucket and file "
            "systems, key and policies, cluster). Resources of one kind are created at the same time, and no "
            "time passes between two commands.",
        ],
    )


def _at_most(name: str, ratio: float, goal: float) -> Row:
    met = ratio <= goal
    return Row(name=name, goal=f"<= {goal:g}x", measured=f"{ratio:.2f}x", verdict="met" if met else "missed")


def _parts(path: Sequence[Step]) -> list[tuple[str, float]]:
    """Return names and seconds: long steps by their type, and the short ones between them by stack."""

    def part(step: Step) -> str:
        kind = step.resource.type.rpartition("::")[2]
        return kind if step.duration_s >= _SHOWN_S else f"{step.resource.stack}: short steps"

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


def _calls(folder: Path) -> dict[int, int]:
    """Return the AWS calls of a create, by number of queues. Raises RehearsalError."""
    wanted = [[case(family=family) for family in FAMILIES[:queues]] for queues in QUEUES]
    made = create_each(wanted, folder=folder)
    return {queues: each.calls for queues, each in zip(QUEUES, made, strict=True)}


def growth(calls: Mapping[int, int]) -> float:
    """Return the ratio of the calls that the last two doublings of queues add; 2 is linear growth."""
    first, second, last = sorted(calls)[-3:]
    return (calls[last] - calls[second]) / max(1, calls[second] - calls[first])


def _cut_rows(resources: Mapping[str, Resource], table: Mapping[str, Any], ideal: float) -> Iterator[Row]:
    """Yield the critical path with one more cut each."""
    for number in range(1, len(CUTS) + 1):
        whole = critical_path(cut(resources, CUTS[:number]), **table)[-1].ends_s
        moved = ", ".join(each.moved for each in CUTS[:number])
        yield Row(
            name=f"critical path, with {moved} in separate stacks",
            measured=f"{whole / 60:.1f} min, {whole / ideal:.2f}x",
        )


def _update_rows() -> Iterator[Row]:
    for title, kind in _UPDATES.items():
        parts = read_parts(kind)
        yield Row(
            name=f"{title[0].lower()}{title[1:]}, deploy to done, on AWS",
            measured=f"{total_s(parts) / 60:.1f} min, of which ours {total_s(parts, whose='ours'):.0f} s",
        )


def _deploy_rows(deploys: Mapping[str, Deploy]) -> Iterator[Row]:
    for name, each in deploys.items():
        yield Row(
            name=f"rehearsed {name}",
            measured=f"{each.seconds:.0f} s, {each.calls} AWS calls (synth {each.synth_s:.0f} s)",
        )


def _call_rows(calls: Mapping[int, int]) -> list[Row]:
    least, most = min(calls), max(calls)
    each = (calls[most] - calls[least]) / (most - least)
    found = ", ".join(f"{queues}: {number}" for queues, number in calls.items())
    return [
        Row(
            name="AWS calls of the library for a cluster, by number of queues",
            measured=f"{found} ({each:.1f} a queue)",
        ),
        _at_most(
            "calls added by the last doubling of queues, against the doubling before",
            growth(calls),
            GROWTH_GOAL,
        ),
    ]
