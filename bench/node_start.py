"""`python -m bench.node_start`: start nodes with everything baked into their image; seconds of each step.

In throw-away machines (rehearsal/node_root) without any network: what is timed is our scripts, from the
action that ParallelCluster runs to its end; booting, and ParallelCluster's own work, are not in it.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rehearsal.node_root.base import NoRootError
from rehearsal.node_root.image_build import build_image
from rehearsal.node_root.node import Bucket, Node, new_node
from training_cluster.settings import Settings

GOAL_S = 10.0
RUNS = 5
FAMILY = "m6i"
_STEP = re.compile(r"bootstrap: step (\S+): ")


def start(node: Node) -> dict[str, float]:
    """Start a node; seconds of each step that it names, and what came before the first.

    Raises:
        SystemExit: it did not start.
    """
    took, said, last = {}, [], time.perf_counter()
    with node.process("start", network=False) as process:
        assert process.stderr
        for line in process.stderr:
            now = time.perf_counter()
            said.append(line)
            name = "fetch and verify the bundle" if " runs the bundle " in line else None
            if step := _STEP.search(line):
                name = step[1]
            if name:
                took[name], last = now - last, now
    if process.returncode:
        sys.exit("".join(said))
    return took


def main() -> None:
    """Print one row a step, and one for all."""
    settings = Settings.from_context({"family": FAMILY, "image": "build"})
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        bucket = Bucket(folder=Path(folder), settings=settings)
        sha256 = bucket.publish()
        with new_node(bucket=bucket) as builder:
            built = build_image(builder.machine, bucket)
            if built.returncode:
                sys.exit(built.stderr)
            for _ in range(RUNS):
                with new_node(bucket=bucket, image=builder.machine.disk) as node:
                    node.boot(sha256)
                    runs.append(start(node))
    print("| name | goal | measured | result |\n|---|---|---|---|")
    for step in runs[0]:
        print(f"| start of a node: {step} | | {statistics.median(run[step] for run in runs):.2f} s | |")
    totals = [sum(run.values()) for run in runs]
    median = statistics.median(totals)
    print(
        f"| start of a node, all baked: {len(runs[0]) - 1} steps | < {GOAL_S:g} s | {median:.2f} s "
        f"({min(totals):.2f} to {max(totals):.2f}, {RUNS} runs) | {'met' if median < GOAL_S else 'missed'} |"
    )


if __name__ == "__main__":
    try:
        main()
    except NoRootError as error:
        print("| name | goal | measured | result |\n|---|---|---|---|")
        print(f"| start of a node, all baked | < {GOAL_S:g} s | | not run |")
        sys.exit(str(error))
