"""Runs, rows and checkpoints for tests of trainkit.run."""

from pathlib import Path
from typing import Any

from trainkit.run import checkpoints, settings
from trainkit.run.run import Run


def a_run(root: Path, *, rank: int = 0, name: str = "run") -> Run:
    folders = {part: root / part / name for part in ("runs", "checkpoints")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return Run(
        run_dir=folders["runs"],
        checkpoint_dir=folders["checkpoints"],
        data_dir=root / "data",
        rank=rank,
        local_rank=rank,
        world_size=2,
    )


def row(step: int, **changes: Any) -> dict[str, Any]:
    return {
        "step": step,
        "loss": 8 / step,
        "learning_rate": 1e-3,
        "tokens": 100 * step,
        "tokens_per_s": 1000.0 * step,
        "step_s": 0.1,
        "data_s": 0.01,
        "memory_bytes": 2**30,
        "world_size": 2,
    } | changes


def save(run: Run, step: int, *, keep: int = 2, made_with: settings.TrainSettings | None = None) -> Path:
    written = checkpoints.partial(run.checkpoint_dir, step)
    written.mkdir()
    (written / "weights").write_text(str(step))
    (written / "part").mkdir()
    (written / "part" / "0").touch()
    return checkpoints.publish(written, step, run=run, keep=keep, settings=made_with)
