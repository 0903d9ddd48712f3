"""The whole process `cdk synth`, compared with an empty app and with a plain one."""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.measuring.programs import ratios, turns, watch
from bench.measuring.result import Result, at_most
from training_cluster.paths import ROOT

TITLE = "cdk synth as a whole process"
SAMPLES = ROOT / "bench" / "samples"
ROUNDS = 4
APPS = {
    "ours": "app.py",
    "empty CDK app": "bench/samples/empty_app.py",
    "VPC + Lustre + custom resource": "bench/samples/plain_app.py",
}
# The import of each app's modules, which starts jsii's process.
IMPORTS = {"ours": "import app", "empty CDK app": "import aws_cdk"}
_FLOOR, _SAMPLE = 1.5, 1.0
_NO_VALIDATION = {"CDK_VALIDATION": "false"}


def measure() -> Result:
    """Alternate our app, the empty one and the plain one."""
    with tempfile.TemporaryDirectory() as folder:
        works = {name: _synth(app, Path(folder) / name) for name, app in APPS.items()}
        for name, statement in IMPORTS.items():
            works[f"{name}, not validated"] = _synth(APPS[name], Path(folder) / name, **_NO_VALIDATION)
            works[f"{name}, imports"] = _imports(statement)
        seconds = turns(works, rounds=ROUNDS, warm_up=1)
    ours, empty, plain = (seconds[name] for name in APPS)
    return Result(
        rows=[
            at_most("synth, against an empty CDK app in Python", ratios(ours, empty), _FLOOR),
            at_most("synth, against a plain VPC + Lustre + custom resource", ratios(ours, plain), _SAMPLE),
        ],
        figures={"seconds": seconds},
        notes=[
            "The times include the CDK CLI, Python, jsii and writing the templates. This app is synthesised "
            "with its default flags: three stacks with about 150 resources and two asset bundles.",
            f"The time of this app, with the empty app in brackets: {_parts(seconds)}. The CDK also "
            "validates the templates of the empty app.",
        ],
    )


def _parts(seconds: Mapping[str, Sequence[float]]) -> str:
    """Return the seconds of validation, imports and the rest, of the app and of the empty app."""
    parts: dict[str, list[float]] = {}
    for name in IMPORTS:
        whole, bare, imports = (
            statistics.median(seconds[f"{name}{suffix}"]) for suffix in ("", ", not validated", ", imports")
        )
        found = {
            "CDK's validation of templates": whole - bare,
            "Python's imports and the start of jsii": imports,
            "the CDK CLI, constructs and templates": bare - imports,
        }
        for part, value in found.items():
            parts.setdefault(part, []).append(value)
    return ", ".join(f"{part} {ours:.1f} s ({empty:.1f} s)" for part, (ours, empty) in parts.items())


def _imports(statement: str) -> Callable[[], float]:
    return lambda: watch([sys.executable, "-c", statement], cwd=ROOT, environment=os.environ).seconds


def _synth(app: str, output: Path, **variables: str) -> Callable[[], float]:
    path = f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    environment = {**os.environ, **variables, "PATH": path}
    command = ["cdk", "synth", "--quiet", "--app", f"{sys.executable} {app}", "--output", str(output)]
    return lambda: watch(command, cwd=ROOT, environment=environment).seconds
