"""A cluster config of 50 queues with 1,000 nodes each: rendered and checked by ours, loaded by the library.

`python -m bench.subjects.scale_config FILE` renders, checks and writes it once, in a fresh process.
The imports of aws_cdk, which synth pays anyway and this does not need, are not in it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.measuring.result import Row, at_most, bar, spread
from bench.measuring.timing import ratios, run, take_turns
from training_cluster.paths import ROOT

PCLUSTER_PYTHON = ROOT / ".venv-pcluster" / "bin" / "python"
QUEUES, NODES = 50, 1000
GOAL_S = 2.0
ROUNDS = 5
# Loading is checking against the schema; the library's validators, which ask AWS, come after it.
_LOAD = """
import sys, yaml
from pcluster.schemas.cluster_schema import ClusterSchema
with open(sys.argv[1]) as file:
    config = ClusterSchema(cluster_name="training").load(yaml.safe_load(file))
assert len(config.scheduling.queues) == int(sys.argv[2])
"""


def measure_config(folder: Path) -> tuple[list[Row], dict[str, list[float]]]:
    """Take turns: ours, and the library's schema. Rows and seconds."""
    config = folder / "config.yaml"
    ours = _process([sys.executable, "-m", "bench.subjects.scale_config", config])
    ours()  # the other reads what it writes
    library = _process([PCLUSTER_PYTHON, "-c", _LOAD, config, str(QUEUES)])
    seconds = take_turns({"ours": ours, "library": library}, rounds=ROUNDS)
    median = bar("", seconds["ours"]).median
    rows = [
        Row(
            name=f"render and check {QUEUES} queues x {NODES:,} nodes",
            goal=f"< {GOAL_S:g} s",
            measured=spread(seconds["ours"], " s"),
            verdict="met" if median < GOAL_S else "missed",
        ),
        at_most(
            "the same, against the library's own load of the config",
            ratios(seconds["ours"], seconds["library"]),
            1.0,
        ),
    ]
    return rows, seconds


def _process(command: list[str | Path]) -> Callable[[], None]:
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}

    def work() -> None:
        run(command, cwd=ROOT, environment=environment)

    return work


def main(file: Path) -> None:
    """Do it once in this process."""
    from training_cluster.cluster.config import render_cluster_config  # noqa: PLC0415  # timed too
    from training_cluster.cluster.queues import queues, render_queue  # noqa: PLC0415
    from training_cluster.cluster.resource_ids import placeholders  # noqa: PLC0415
    from training_cluster.pcluster.rules import rule_problems  # noqa: PLC0415
    from training_cluster.pcluster.schema import schema_problems  # noqa: PLC0415
    from training_cluster.rules.context import read_settings  # noqa: PLC0415

    settings = read_settings({"family": "p5", "nodes": str(NODES)})
    ids = placeholders(image_id=None, bootstrap_budget_s=0)
    config = render_cluster_config(settings=settings, ids=ids)
    (one,) = queues(settings, ids)
    many = [replace(one, name=f"queue-{i}", compute_resource=f"p5-{i}") for i in range(QUEUES)]
    config["Scheduling"]["SlurmQueues"] = [render_queue(queue, ids=ids) for queue in many]
    problems = schema_problems(config) + rule_problems(config)
    assert not problems, problems
    file.write_text(json.dumps(config), encoding="utf-8")  # YAML, too


if __name__ == "__main__":
    main(Path(sys.argv[1]))
