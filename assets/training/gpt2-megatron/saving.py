"""Checkpoints: one file per piece of the model, written by the first data parallel rank that has the piece.

Megatron's own distributed format would also fit other parallel sizes, but its writer starts processes that
waited forever on CPUs (megatron-core 0.16.1), so this module uses a format that could be tested.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from trainkit.resuming import own_options
from trainkit.run import checkpoints
from trainkit.run.files import sync
from trainkit.run.run import die
from trainkit.sums import note_sums

if TYPE_CHECKING:
    from rank import Rank
    from settings import Settings

PROGRESS = "progress.json"


def piece(folder: Path) -> Path:
    """Return the file of this rank's piece."""
    tensor = parallel_state.get_tensor_model_parallel_rank()
    pipeline = parallel_state.get_pipeline_model_parallel_rank()
    return folder / f"tensor-{tensor:02d}-pipeline-{pipeline:02d}.pt"


def save(rank: Rank, core: Any, data: str, *, step: int) -> None:
    """Write the ranks' pieces into a partial folder, which rank 0 then gives its name."""
    run = rank.run
    with checkpoints.writing(run, step, settings=rank.settings, barrier=dist.barrier) as folder:
        if parallel_state.get_data_parallel_rank() == 0:
            torch.save({"model": core.state_dict(), "optimizer": rank.optimizer.state_dict()}, piece(folder))
            sync(piece(folder))
            note_sums(run, folder, [piece(folder)])
        if run.is_first:
            noted = {"step": step, "data": data, **kept(rank.settings)}
            (folder / PROGRESS).write_text(json.dumps(noted) + "\n", encoding="utf-8")


def kept(settings: Settings) -> dict[str, Any]:
    """Return the settings that must not change during a run, for an export of its weights."""
    return {name: getattr(settings, name) for name in settings.kept} | {"gelu": "tanh"}


def resume(rank: Rank, core: Any, data: str) -> int:
    """Load the newest checkpoint; return its step, or 0. Die if it belongs to another model or other data."""
    found = checkpoints.resume_from(rank.run)
    if found is None:
        return 0
    with checkpoints.loading(found):
        noted = json.loads((found / PROGRESS).read_text(encoding="utf-8"))
    if "gelu" not in noted:
        die(f"{found} is of an older version, which had another GELU: begin another RUN_NAME.")
    if noted["data"] != data:
        die(f"{found} was trained on other data: give its CORPUS and text, or another RUN_NAME.")
    # It contains the optimizer's settings, which are not tensors, so the file may contain code.
    if (owner := piece(found).stat().st_uid) not in {0, os.geteuid()}:
        die(f"{piece(found)} belongs to the user {owner}, who could run code by it: give another RUN_NAME.")
    # Megatron's schedule takes the highest and the lowest rate from these options.
    with checkpoints.loading(found), own_options(rank.optimizer):
        loaded = torch.load(piece(found), map_location="cpu", weights_only=False)
        core.load_state_dict(loaded["model"])
        rank.optimizer.load_state_dict(loaded["optimizer"])
    rank.run.say(f"resuming from {found}")
    return int(noted["step"])
