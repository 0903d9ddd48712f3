"""The start of a node whose image has everything baked in: seconds of each step.

It runs in throw-away machines (rehearsal/node_root) without any network and times our scripts, from the
action that ParallelCluster runs to its end; booting and ParallelCluster's own work are not included.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measuring import page
from bench.measuring.result import Bars, Result, Row, bar, not_run, spread
from bench.measuring.timing import BaselineError
from bench.subjects.waits import chain, read_parts, total_s
from rehearsal.node_root.base import NoRootError
from rehearsal.node_root.image_build import build_image
from rehearsal.node_root.node import Bucket, Node, new_node
from rehearsal.problems import RehearsalError
from training_cluster.paths import ASSETS
from training_cluster.rules.context import read_settings

TITLE = "start of a node, everything baked into its image"
GOAL_S = 10.0
ROUNDS = 5
FAMILY, WORKLOAD = "m6i", "gpt2"
# A small environment: the workload's own takes minutes to bake, and a start only checks that it exists.
_REQUIREMENTS = "# Recipes: all\n# Budget: 60 s\niniconfig==2.3.1\n"
_STEP = re.compile(r"bootstrap: step (\S+): ")
_FETCH = "fetch and verify the bundle"


def measure() -> Result:
    """Build an image once, then start nodes from it, one after the other."""
    try:
        runs = _runs()
    except NoRootError as error:
        return Result(rows=[not_run(TITLE, f"< {GOAL_S:g} s", str(error))])
    except RehearsalError as error:
        raise BaselineError(str(error)) from error
    steps = {step: [run[step] for run in runs] for step in runs[0]}
    return Result(
        rows=[*rows(runs), *first_step_rows(runs, _first_steps())],
        figures={"seconds": steps},
        picture=Bars(
            title=TITLE, x_label="seconds", bars=[bar(step, seconds) for step, seconds in steps.items()]
        ),
        notes=[
            f"This starts a compute node of the family {FAMILY} in a temporary root without a network. The "
            "time excludes booting and ParallelCluster's own work. The image contains one workload with one "
            "small package, because a start only checks that the environment matches the workload's folder.",
            f"On a powered-down node, the time is the sum of: {chain(read_parts('node'))}; the start above; "
            "and the first step of gpt2, as the benchmark `rehearsal` measures it. The part of the first "
            "step that bare torchrun also takes does not count as ours. The published time is that of nodes "
            "without custom scripts. It includes Slurm's scheduling interval of 30 s. This did not run on "
            "AWS; bench/waits.yaml names the sources.",
        ],
    )


def rows(runs: Sequence[Mapping[str, float]]) -> list[Row]:
    """Return a row for all steps, and one for the slowest."""
    totals = [sum(run.values()) for run in runs]
    slowest = max(runs[0], key=lambda step: bar("", [run[step] for run in runs]).median)
    met = bar("", totals).median < GOAL_S
    return [
        Row(
            name=f"{TITLE}: {len(runs[0]) - 1} steps",
            goal=f"< {GOAL_S:g} s",
            measured=spread(totals, " s"),
            verdict="met" if met else "missed",
        ),
        Row(name=f"its slowest part: {slowest}", measured=spread([run[slowest] for run in runs], " s")),
    ]


def first_step_rows(
    runs: Sequence[Mapping[str, float]], first_steps: Mapping[str, Sequence[float]] | None
) -> list[Row]:
    """Return the time from sbatch to the first step on a powered-down node, and this project's part of it.

    Args:
        first_steps: seconds from sbatch, and from bare torchrun, to the first step on running nodes.
    """
    name = "sbatch to the first step on a powered-down node"
    if first_steps is None:
        return [not_run(name, f"<= {GOAL_S:g} s", "no figures of the benchmark rehearsal")]
    start = statistics.median(sum(run.values()) for run in runs)
    job, bare = (statistics.median(first_steps[each]) for each in ("sbatch", "bare torchrun"))
    ours = start + job - bare
    return [
        Row(name=f"{name}, on AWS", measured=f"{total_s(read_parts('node')) + start + job:.0f} s"),
        Row(
            name="of it ours",
            goal=f"<= {GOAL_S:g} s",
            measured=f"{ours:.1f} s",
            verdict="met" if ours <= GOAL_S else "missed",
        ),
    ]


def _first_steps() -> Mapping[str, Sequence[float]] | None:
    """Return the first steps of the last run of the benchmark `rehearsal`; None without one."""
    file = page.RESULTS / "rehearsal.json"
    if not file.is_file():
        return None
    found: dict[str, list[float]] = json.loads(file.read_text(encoding="utf-8"))["figures"]["first_step_s"]
    return found


def read_steps(timed: Sequence[tuple[float, str]], *, began: float) -> dict[str, float]:
    """Return the seconds of each step in a start's log, and of the time before the first.

    Args:
        timed: time and text of each line of its log.
        began: time at which it was started.
    """
    took, last = {}, began
    for when, line in timed:
        name = _FETCH if " runs the bundle " in line else None
        if step := _STEP.search(line):
            name = step[1]
        if name:
            took[name], last = when - last, when
    return took


def _runs() -> list[dict[str, float]]:
    """Return the seconds of each step in each run.

    Raises:
        NoRootError: throw-away machines cannot be made here.
        BaselineError: a start failed.
    """
    settings = read_settings({"family": FAMILY, "image": "build", "workloads": WORKLOAD})
    with tempfile.TemporaryDirectory() as folder:
        assets = Path(folder) / "assets"
        shutil.copytree(ASSETS, assets, ignore=shutil.ignore_patterns("__pycache__"))
        (assets / "training" / WORKLOAD / "requirements.txt").write_text(_REQUIREMENTS, encoding="utf-8")
        (assets / "training" / WORKLOAD / "requirements.lock").unlink()
        bucket = Bucket(folder=Path(folder) / "s3", settings=settings, assets=assets)
        sha256 = bucket.publish()
        with new_node(bucket=bucket) as builder:
            built = build_image(builder.machine, bucket)
            if built.returncode:
                raise BaselineError(f"the image was not built:\n{built.stderr}")
            runs = []
            for _ in range(ROUNDS):
                with new_node(bucket=bucket, image=builder.machine.disk) as node:
                    node.boot(sha256)
                    runs.append(_start(node))
    return runs


def _start(node: Node) -> dict[str, float]:
    timed, began = [], time.perf_counter()
    with node.process("start", network=False) as process:
        assert process.stderr
        for line in process.stderr:
            timed.append((time.perf_counter(), line))
    if process.returncode:
        raise BaselineError(f"a node did not start:\n{''.join(line for _, line in timed)}")
    return read_steps(timed, began=began)
