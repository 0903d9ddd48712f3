"""The whole process `cdk synth`, compared with an empty app and with a plain one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measuring.result import Bars, Result, at_most, bar
from bench.measuring.timing import ratios, run, take_turns
from training_cluster.paths import ROOT

TITLE = "cdk synth as a whole process"
SAMPLES = ROOT / "bench" / "samples"
ROUNDS = 5
APPS = {
    "ours": "app.py",
    "empty CDK app": "bench/samples/empty_app.py",
    "VPC + Lustre + custom resource": "bench/samples/plain_app.py",
}
_FLOOR, _SAMPLE = 2.0, 1.0


def measure() -> Result:
    """Alternate our app, the empty one and the plain one."""
    with tempfile.TemporaryDirectory() as folder:
        works = {
            name: _synth(app, Path(folder) / str(number)) for number, (name, app) in enumerate(APPS.items())
        }
        seconds = take_turns(works, rounds=ROUNDS)
    ours, empty, plain = seconds.values()
    return Result(
        rows=[
            at_most("synth, against an empty CDK app in Python", ratios(ours, empty), _FLOOR),
            at_most("synth, against a plain VPC + Lustre + custom resource", ratios(ours, plain), _SAMPLE),
        ],
        figures={"seconds": seconds},
        picture=Bars(
            title="cdk synth, whole process",
            x_label="seconds",
            bars=[bar(name, values) for name, values in seconds.items()],
        ),
        notes=[
            "The CDK CLI, Python, jsii and writing the templates are in it. Ours is the default: three "
            "stacks with about 150 resources and two asset bundles."
        ],
    )


def _synth(app: str, output: Path) -> Callable[[], None]:
    environment = {**os.environ, "PATH": f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"}
    command = ["cdk", "synth", "--quiet", "--app", f"{sys.executable} {app}", "--output", str(output)]

    def work() -> None:
        run(command, cwd=ROOT, environment=environment)

    return work
