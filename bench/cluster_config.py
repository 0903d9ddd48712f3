"""`python -m bench.cluster_config`: render and check a cluster config of 50 queues, the most there can be.

A fresh process each time, as at synth: imports, catalog and schema are read once and are part of it.
The imports of aws_cdk, which synth pays anyway and this does not need, are not.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import replace

QUEUES = 50
GOAL_S = 2.0
RUNS = 7


def render_and_check() -> None:
    """Do it once in this process."""
    from training_cluster.cluster_config import render_cluster_config  # noqa: PLC0415  # timed too
    from training_cluster.config_rules import rule_problems  # noqa: PLC0415
    from training_cluster.config_schema import schema_problems  # noqa: PLC0415
    from training_cluster.queues import queues, render_queue  # noqa: PLC0415
    from training_cluster.resource_ids import placeholders  # noqa: PLC0415
    from training_cluster.settings import Settings  # noqa: PLC0415

    settings = Settings.from_context({"family": "p5"})
    ids = placeholders(image_id=None, bootstrap_budget_s=0)
    config = render_cluster_config(settings=settings, ids=ids)
    (one,) = queues(settings, ids)
    many = [replace(one, name=f"queue-{i}", compute_resource=f"p5-{i}") for i in range(QUEUES)]
    config["Scheduling"]["SlurmQueues"] = [render_queue(queue, ids=ids) for queue in many]
    problems = schema_problems(config) + rule_problems(config)
    assert not problems, problems


def main() -> None:
    """Print one row."""
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "bench.cluster_config", "once"], check=True)
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds)
    print("| name | goal | measured | result |\n|---|---|---|---|")
    print(
        f"| render and check {QUEUES} queues | < {GOAL_S:g} s | {median:.2f} s "
        f"({min(seconds):.2f} to {max(seconds):.2f}, {RUNS} runs) | {'met' if median < GOAL_S else 'missed'} "
        "|"
    )


if __name__ == "__main__":
    render_and_check() if sys.argv[1:] == ["once"] else main()
