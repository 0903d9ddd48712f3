"""trainctl's response time: the wait before anything is done."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measuring.result import Bars, Result, at_most, bar
from bench.measuring.timing import run, take_turns
from training_cluster.paths import ROOT

TITLE = "trainctl as a whole process"
ROUNDS = 9
_HELP_S, _FIRST_OUTPUT_S = 0.4, 1.0
_PYTHON, _HELP, _PRICE = "python, doing nothing", "trainctl --help", "trainctl price --offline"


def measure() -> Result:
    """Alternate three commands: an idle interpreter, the help, and a price that reads flags and catalog."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "AWS_EC2_METADATA_DISABLED": "true"}
        trainctl = Path(sys.executable).with_name("trainctl")

        def works(*command: str | Path) -> Callable[[], None]:
            def work() -> None:
                run(command, cwd=ROOT, environment=environment)

            return work

        seconds = take_turns(
            {
                _PYTHON: works(sys.executable, "-c", "pass"),
                _HELP: works(trainctl, "--help"),
                _PRICE: works(trainctl, "price", "--offline"),
            },
            rounds=ROUNDS,
        )
    return Result(
        rows=[
            at_most(_HELP, seconds[_HELP], _HELP_S, " s"),
            at_most(f"{_PRICE}, whole run", seconds[_PRICE], _FIRST_OUTPUT_S, " s"),
        ],
        figures={"seconds": seconds},
        picture=Bars(
            title="trainctl, whole process",
            x_label="seconds",
            bars=[bar(name, values) for name, values in seconds.items()],
        ),
        notes=["Each subcommand imports its dependencies when it runs. Help imports only typer and rich."],
    )
