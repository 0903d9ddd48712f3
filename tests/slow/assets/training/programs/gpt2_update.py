"""Steps of gpt2 on a CPU, and when their numbers are read; run in the environment of the workload."""

# mypy: disable-error-code="import-not-found"

import contextlib
import dataclasses
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import behind
import loop
import saving
import torch
from accelerate import Accelerator
from model import make_model, make_optimizer
from settings import Prepared, Settings, Shape
from trainkit.local_checkpoints import LocalCheckpoints
from trainkit.run.checkpoints import START_STEP, path_of
from trainkit.run.run import Run

READERS = ("item", "tolist", "__float__", "__bool__")
STEPS = 8
SHAPE = Shape(1, 2, 16, 8, 64)
IDS = torch.arange(16).reshape(2, 8)


def refuse(*_: object) -> NoReturn:
    """Fail, since a GPU has to finish its work before a number can be read."""
    raise AssertionError("a number was read")


@contextlib.contextmanager
def unread() -> Iterator[None]:
    """Refuse to read numbers."""
    own = {name: getattr(torch.Tensor, name) for name in READERS}
    for name in READERS:
        setattr(torch.Tensor, name, refuse)
    yield
    for name, function in own.items():
        setattr(torch.Tensor, name, function)


class Scene:
    """A run whose updates take a second and whose reads 0.25 s; events: ["give", 1], ["read", 1] ..."""

    def __init__(self, folder: Path, *, saved_after: int = STEPS, slow_s: float = 60.0) -> None:
        self.events: list[list[Any]] = []
        self.clock_s = 0.0
        behind.SLOW_S = slow_s
        behind.time = SimpleNamespace(perf_counter=lambda: self.clock_s)
        self._saved_after = saved_after
        self._update, self._given = loop.update, 0
        self.settings = Settings(device="cpu", max_steps=STEPS, eval_sequences=0)
        run = Run(run_dir=folder, data_dir=folder, checkpoint_dir=folder, rank=0, local_rank=0, world_size=1)
        self.accelerator = Accelerator(cpu=True)
        self.rank = loop.Rank(
            run=run,
            settings=self.settings,
            shape=SHAPE,
            prepared=Prepared(folder, None, "scratch"),
            manifest=None,
            accelerator=self.accelerator,
        )
        self.model = make_model(self.settings, SHAPE, None)

    def update(self, *given: Any) -> Any:
        """Make three micro-steps, whose numbers nothing may read; a step's own event comes first."""
        self._given += 1
        self.events.append(["give", self._given])
        self.between(self._given)
        self.clock_s += 1.0
        with unread():
            return self._update(*given)

    def between(self, number: int) -> None:
        """Do nothing before the update of a step."""

    def train(self) -> dict[str, Any]:
        """Return the events, the step of a stop, and the rows."""
        loop.update = self.update
        finished = SimpleNamespace(
            save=lambda *, step, **_: self.events.append(["save", step]), finish=lambda: None
        )
        loop.Saving = lambda *_: finished
        write = loop.Steps.add

        def add(rows: Any, **row: Any) -> None:
            self.events.append(["read", row["step"]])
            self.clock_s += 0.25
            write(rows, **row)

        loop.Steps.add = add
        saves = SimpleNamespace(due=lambda step: step in {self._saved_after, STEPS})
        ahead = SimpleNamespace(batches=lambda _: [IDS, IDS, IDS])
        model, optimizer = self.accelerator.prepare(self.model, make_optimizer(self.model, self.settings))
        stopped_at = ended = None
        try:
            stopped_at = loop.train_steps(self.rank, model, optimizer, saves, ahead=ahead, flops=1.0)
        except SystemExit as error:
            ended = str(error)
        finally:
            loop.update, loop.Steps.add = self._update, write
        text = (self.rank.run.run_dir / "metrics.jsonl").read_text(encoding="utf-8")
        return {
            "events": self.events,
            "stopped_at": stopped_at,
            "ended": ended,
            "rows": [json.loads(line) for line in text.splitlines()],
        }


class Stopped(Scene):
    """A run that gets SIGTERM in its fifth step."""

    def between(self, number: int) -> None:
        """Send it."""
        if number == 5:
            os.kill(os.getpid(), signal.SIGTERM)


class Diverged(Scene):
    """A run whose weights become NaN in its fifth step."""

    def between(self, number: int) -> None:
        """Break them."""
        if number == 5:
            with torch.no_grad():
                next(self.model.parameters()).fill_(torch.nan)


def refusal(function: Callable[[], object]) -> str:
    """Return the sentence with which a rank ends."""
    try:
        function()
    except SystemExit as error:
        return str(error)
    return ""


def alone(folder: Path) -> str:
    """Train as the only rank of a job that has two."""
    names = ("RUN_DIR", "DATA_DIR", "CHECKPOINT_DIR")
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "EXPECTED_WORLD_SIZE": "2"}
    os.environ |= dict.fromkeys(names, str(folder)) | ranks
    scene = Scene(folder)
    run, prepared = Run.from_environment(), scene.rank.prepared
    return refusal(lambda: loop.train(run, scene.settings, SHAPE, prepared, None))


def shared_only(rank: loop.Rank) -> LocalCheckpoints:
    """Return no checkpoints on the nodes' own disks."""
    return LocalCheckpoints(rank.run, every=0, is_sharded=False)


def other_data(folder: Path) -> str:
    """Resume from a checkpoint that was trained on other data."""
    checkpoint = path_of(folder, 4)
    checkpoint.mkdir()
    progress = {"step": 4, "tokens": 1, "shape": dataclasses.asdict(SHAPE), "data": "other"}
    (checkpoint / "progress.json").write_text(json.dumps(progress), encoding="utf-8")
    os.environ[START_STEP] = "4"
    rank = dataclasses.replace(Scene(folder).rank, manifest=SimpleNamespace(sum_of_tokens="this"))
    return refusal(lambda: loop.resume(rank, None, None, shared_only(rank)))


def copied(folder: Path) -> dict[str, Any]:
    """Update weights that a save still copies; return whether they were as before when the copy ended."""
    scene, found = Scene(folder), dict[str, bool]()
    model, optimizer = scene.accelerator.prepare(scene.model, make_optimizer(scene.model, scene.settings))
    weight = next(model.parameters())
    before = weight.detach().clone()
    save = saving.Saving(scene.rank, model, optimizer, shared_only(scene.rank))
    save._copied = SimpleNamespace(result=lambda: found.update(copied=torch.equal(weight, before)))
    loop.update(scene.accelerator, model, optimizer, [IDS])
    return found | {"updated": not torch.equal(weight, before)}


def no_memory(*_: object) -> NoReturn:
    """Fail as a copy does."""
    raise RuntimeError("no memory is left for the copy")


def without_local_copy(folder: Path) -> dict[str, Any]:
    """Update weights that could not be copied for the node's own disk; return whether local saves go on."""
    os.environ["SCRATCH"] = str(folder)
    scene, local_steps = Scene(folder), []
    model, optimizer = scene.accelerator.prepare(scene.model, make_optimizer(scene.model, scene.settings))
    local = LocalCheckpoints(scene.rank.run, every=1, is_sharded=False)
    save = saving.Saving(scene.rank, model, optimizer, local)
    save._local_stager = SimpleNamespace(stage=no_memory)
    save._progress = lambda *_: {}
    for step in (1, 2):
        if local.due(step):
            local_steps.append(step)
            save.save_locally(step=step, tokens=1)
        loop.update(scene.accelerator, model, optimizer, [IDS])
        local.finish()
    return {"local_steps": local_steps}


def main() -> None:
    """Print what happened in each scene."""
    found = {}
    scenes: dict[str, Any] = {"whole": Scene, "stopped": Stopped, "diverged": Diverged}
    with contextlib.redirect_stdout(sys.stderr):
        for name, kind in scenes.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name] = kind(Path(folder)).train()
        with tempfile.TemporaryDirectory() as folder:
            found["slow"] = Scene(Path(folder), slow_s=0.0).train()
        with tempfile.TemporaryDirectory() as folder:
            found["saved"] = Scene(Path(folder), saved_after=6).train()
        with tempfile.TemporaryDirectory() as folder:
            found["copied"] = copied(Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            found["without local copy"] = without_local_copy(Path(folder))
        for name, refused in (("other data", other_data), ("alone", alone)):
            with tempfile.TemporaryDirectory() as folder:
                found[name] = {"ended": refused(Path(folder)), "folder": folder}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
