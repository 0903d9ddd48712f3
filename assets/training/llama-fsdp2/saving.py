"""Checkpoints that do not stop the training: copied to host memory at once, written in the background.

Distributed: each rank writes what it holds, and any number of ranks can read it. A checkpoint has its name,
step-000123, when all ranks have written; at most one is on its way.
"""

from __future__ import annotations

import json
import shutil
import textwrap
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from model import Llama
from progress import Progress
from torch.distributed.checkpoint import CheckpointException
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from trainkit.run import checkpoints, process_group
from trainkit.run.run import Run, die

# A line a checkpoint: how long the training paused for it, and how long it took to be complete.
LOG = "checkpoints.jsonl"


class Saver:
    """Writes the checkpoints of one run; the calls of all ranks go together."""

    def __init__(
        self, run: Run, model: Llama, optimizer: torch.optim.Optimizer, *, keep: int, device: torch.device
    ) -> None:
        self._run, self._model, self._optimizer = run, model, optimizer
        self._keep, self._device = keep, device
        # Of its own: what the background sends must not come between what the training sends.
        self._group = process_group.background_group()
        on_gpu = device.type == "cuda"
        self._stager = DefaultStager(
            StagingOptions(
                use_pinned_memory=on_gpu,
                use_shared_memory=False,
                use_async_staging=False,
                use_non_blocking_copy=on_gpu,
            )
        )
        self._background = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._on_its_way: Future[None] | None = None

    def save(self, progress: Progress) -> None:
        """Begin a checkpoint, after the one before is whole."""
        started = time.perf_counter()
        self.wait()
        folder = checkpoints.partial(self._run.checkpoint_dir, progress.step)
        written = dcp.async_save(
            {**self._state(), "random": {str(self._run.rank): self._random()}},
            checkpoint_id=folder,
            process_group=self._group,
            async_stager=self._stager,
        )
        assert isinstance(written, Future), "a stager that copies at once"
        stood_still_s = time.perf_counter() - started
        self._on_its_way = self._background.submit(
            self._end, written, folder, progress, started, stood_still_s
        )

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is whole; die if that fails."""
        if self._on_its_way is None:
            return
        try:
            self._on_its_way.result()
        except (CheckpointException, OSError, RuntimeError) as error:
            folder = self._run.checkpoint_dir
            free = shutil.disk_usage(folder).free
            die(
                f"a checkpoint could not be written into {folder}, which has {free / 1e9:.1f} GB free "
                f"({reason(error)}): see to that, and start again with the same RUN_NAME."
            )
        self._on_its_way = None

    def check(self) -> None:
        """Die now if a checkpoint failed meanwhile."""
        if self._on_its_way is not None and self._on_its_way.done():
            self.wait()

    def load(self, found: Path, *, same_world: bool) -> None:
        """Read weights, moments and, for the same number of ranks, each rank's random numbers."""
        state = self._state()
        if same_world:
            state["random"] = {str(self._run.rank): self._random()}
        try:
            dcp.load(state, checkpoint_id=found, process_group=self._group)
        except (CheckpointException, OSError, RuntimeError) as error:
            die(
                f"{found} cannot be read ({reason(error)}): move it away, and the run goes on from the one "
                "before."
            )
        decays = [group["weight_decay"] for group in self._optimizer.param_groups]
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        # Settings are this run's.
        for group, decay in zip(self._optimizer.param_groups, decays, strict=True):
            group["weight_decay"] = decay
        if same_world:
            self._set_random(state["random"][str(self._run.rank)])

    def close(self) -> None:
        """Wait for the last checkpoint, and end the thread that writes."""
        self.wait()
        self._background.shutdown()
        self._stager.close()

    def _end(
        self, written: Future[Any], folder: Path, progress: Progress, started: float, stood_still_s: float
    ) -> None:
        """Give the checkpoint its name when all ranks have written; the first rank's thread does it."""
        written.result()
        if not self._run.is_first:
            return
        progress.write(folder)
        step = progress.step
        began = time.monotonic() - (time.perf_counter() - started)
        final = checkpoints.publish(folder, step, run=self._run, keep=self._keep, started=began)
        whole_s = time.perf_counter() - started
        row = {"step": step, "checkpoint_s": stood_still_s, "whole_s": whole_s}
        with (self._run.run_dir / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"step {step}: checkpoint {final}, training paused {stood_still_s:.2f} s, "
            f"whole after {whole_s:.2f} s"
        )

    def _state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer}

    def _random(self) -> dict[str, torch.Tensor]:
        """Return the states of the random numbers, for a dropout that someone adds; nothing draws now."""
        state = {"host": torch.get_rng_state()}
        if self._device.type == "cuda":
            state["device"] = torch.cuda.get_rng_state(self._device)
        return state

    def _set_random(self, state: dict[str, torch.Tensor]) -> None:
        torch.set_rng_state(state["host"])
        if self._device.type == "cuda":
            torch.cuda.set_rng_state(state["device"], self._device)


def reason(error: Exception) -> str:
    """Return the last line of a long message of several ranks, which has the reason."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return textwrap.shorten(lines[-1], 160, placeholder=" ...")
