"""A cluster config of 50 queues x 1,250 nodes: rendered and checked by our code, loaded by the library.

`python -m bench.subjects.scale_config FILE` renders, checks and writes it once, in a fresh process.
The imports of aws_cdk are not included: synth needs them anyway, and this does not.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from bench.measuring.programs import Command, ratios, turns, watch
from bench.measuring.result import Row, at_most
from training_cluster.paths import PCLUSTER_PYTHON, ROOT

QUEUES, NODES = 50, 1250
GOAL_S = 2.0
ROUNDS = 5
# Loading checks the schema; the library's validators, which call AWS, run after it.
_LOAD = """
import sys, yaml
from pcluster.schemas.cluster_schema import ClusterSchema
with open(sys.argv[1]) as file:
    config = ClusterSchema(cluster_name="training").load(yaml.safe_load(file))
assert len(config.scheduling.queues) == int(sys.argv[2])
"""


def measure_config(folder: Path) -> tuple[list[Row], dict[str, list[float]]]:
    """Alternate our code and the library's schema; return rows and seconds."""
    config = folder / "config.yaml"
    ours = _process([sys.executable, "-m", "bench.subjects.scale_config", config])
    ours()  # the library reads the file that this writes
    library = _process([PCLUSTER_PYTHON, "-c", _LOAD, config, str(QUEUES)])
    seconds = turns({"ours": ours, "library": library}, rounds=ROUNDS, warm_up=1)
    rows = [
        at_most(f"render and check {QUEUES} queues x {NODES:,} nodes", seconds["ours"], GOAL_S, " s"),
        at_most(
            "the same, against the library's own load of the config",
            ratios(seconds["ours"], seconds["library"]),
            1.0,
        ),
    ]
    return rows, seconds


def measure_synth(output: Path, *, nodes: int) -> dict[str, float]:
    """Synthesise the app for so many nodes; return seconds and bytes of its templates."""
    app = f"{sys.executable} app.py"
    environment = {**os.environ, "PATH": f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"}
    command: Command = ["cdk", "synth", "--quiet", "--app", app, "--output", output]
    seconds = watch(
        [*command, "-c", "family=p5", "-c", f"nodes={nodes}"], cwd=ROOT, environment=environment
    ).seconds
    templates = output.glob("*.template.json")
    return {"synth_s": seconds, "template_bytes": sum(each.stat().st_size for each in templates)}


def _process(command: list[str | Path]) -> Callable[[], float]:
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    return lambda: watch(command, cwd=ROOT, environment=environment).seconds


def main(file: Path) -> None:
    """Render, check and write the config once in this process."""
    from training_cluster.cluster.config import render_cluster_config  # noqa: PLC0415  # timed too
    from training_cluster.cluster.queues import render_queue  # noqa: PLC0415
    from training_cluster.cluster.resource_ids import PLACEHOLDERS  # noqa: PLC0415
    from training_cluster.pcluster.rules import rule_problems  # noqa: PLC0415
    from training_cluster.pcluster.schema import schema_problems  # noqa: PLC0415
    from training_cluster.rules.context import read_settings  # noqa: PLC0415

    settings = read_settings({"family": "p5", "nodes": str(NODES)})
    ids = PLACEHOLDERS
    config = render_cluster_config(settings=settings, ids=ids)
    one = settings.first_queue
    (nodes,) = one.resources
    many = [
        one.model_copy(
            update={
                "name": f"queue-{i}",
                "compute_resources": (nodes.model_copy(update={"name": f"p5-{i}"}),),
            }
        )
        for i in range(QUEUES)
    ]
    config["Scheduling"]["SlurmQueues"] = [
        render_queue(queue, cluster_name=settings.cluster_name, ids=ids) for queue in many
    ]
    problems = schema_problems(config) + rule_problems(config)
    assert not problems, problems
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML as well


if __name__ == "__main__":
    main(Path(sys.argv[1]))
