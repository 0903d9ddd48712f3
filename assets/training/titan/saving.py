"""Checkpoints of torchtitan in the layout of every workload here: complete as soon as they have a name.

On GPUs the state is copied into pinned memory of the host while the next step computes; a thread then writes
it. torchtitan would write it from another process for each rank, with the copy in /dev/shm. The SIGTERM by
which Slurm stops a job ends such a process, and with it the save for which the stop waits.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from batches import check_place
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.tensor import DTensor
from torchtitan.components.checkpointer.base import LR_SCHEDULER, OPTIMIZER
from torchtitan.components.checkpointer.dcp import AsyncMode, CheckpointManager
from torchtitan.tools import utils
from trainkit.resuming import own_options
from trainkit.run import checkpoints, process_group
from trainkit.run.run import Run, die, reason
from trainkit.run.settings import TrainSettings, ranks_of_node
from trainkit.run.stopping import Saves, Stop
from trainkit.sizes import ADAM_MOMENTS
from trainkit.sums import note_sums

if TYPE_CHECKING:
    from rows import Rows

SAVE_ERRORS = (OSError, RuntimeError, CheckpointException)
PINNED_SHARE = 0.5
"""Most of a node's memory that its ranks pin, which the system can then use for nothing else."""


class Stager(DefaultStager):
    """The copy of the state, in pinned memory, which stays for the next save."""

    def __init__(self) -> None:
        # A CPU build of torch neither pins nor copies without waiting.
        is_pinned = utils.device_type == "cuda"
        super().__init__(
            StagingOptions(
                use_pinned_memory=is_pinned,
                use_shared_memory=False,
                use_async_staging=True,
                use_non_blocking_copy=is_pinned,
            )
        )

    def stage(self, state_dict: dict[str, Any], **options: Any) -> Any:
        """Begin the copy on a stream of its own, which would not wait for the work that made the state."""
        utils.device_module.synchronize()
        return super().stage(state_dict, **options)


class Checkpoints(CheckpointManager):
    """torchtitan's checkpoints, written beside their place and published by the first rank."""

    @dataclass(kw_only=True, slots=True)
    class Config(CheckpointManager.Config):
        """torchtitan's options."""

    pg: dist.ProcessGroup | None
    save_future: Future[Any] | None
    saves: Saves
    rows: Rows
    settings: TrainSettings
    """Set, as `saves` and `rows` are, by the trainer once it has the model and trains."""

    def __init__(self, config: Config, **parts: Any) -> None:
        super().__init__(config, **parts)
        self._run = Run.from_environment()
        self._stop, self._is_saving = Stop(), False
        self._publisher = ThreadPoolExecutor(max_workers=1)
        self.is_stopping = False
        if self.pg is not None:
            self.pg = process_group.background_group()
        if self.async_mode == AsyncMode.ASYNC_WITH_PINNED_MEM:
            self._pin(parts["model_parts"])
        if self._run.is_first:
            checkpoints.clear_partials(self._run.checkpoint_dir)
        dist.barrier()

    def _pin(self, models: list[torch.nn.Module]) -> None:
        """Prepare the copy into pinned memory, or choose another way if the host has too little memory."""
        needed = ranks_of_node() * state_bytes(models, own=True)
        host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if needed <= PINNED_SHARE * host:
            self.stager = Stager()
            return
        self.async_mode = AsyncMode.ASYNC
        if self._run.is_first:
            print(
                f"checkpoints: the ranks of a node save {needed / 1e9:,.1f} GB, more than {PINNED_SHARE:.0%} "
                f"of its {host / 1e9:,.1f} GB of memory. Nothing is pinned, and steps wait longer (save_s).",
                flush=True,
            )

    def dcp_save(
        self, state_dict: dict[str, Any], checkpoint_id: str, async_mode: AsyncMode, **options: Any
    ) -> Any:
        """Save; what is copied into pinned memory is written by a thread of this process."""
        if async_mode != AsyncMode.ASYNC_WITH_PINNED_MEM:
            return super().dcp_save(state_dict, checkpoint_id, async_mode, **options)
        return dcp.async_save(
            state_dict, checkpoint_id=checkpoint_id, process_group=self.pg, async_stager=self.stager
        )

    def _maybe_wait_for_staging(self) -> None:
        try:
            super()._maybe_wait_for_staging()
        except SAVE_ERRORS as error:
            die(
                f"the state could not be copied into pinned memory ({reason(error, line=0)}): submit with "
                "-- --checkpoint.async-mode async, which needs none."
            )

    def agree_to_stop(self, step: int) -> None:
        """Note if any rank was asked to stop, and how often to save; all ranks call it after each step."""
        asked = torch.tensor(float(self._stop.asked), device=utils.device_type)
        dist.all_reduce(asked)
        self.is_stopping = bool(asked.item())
        self.saves.due(step)
        self.interval = self.saves.every

    def _should_save(self, curr_step: int, last_step: bool = False) -> bool:
        return self.is_stopping or bool(super()._should_save(curr_step, last_step))

    def _save(self, curr_step: int, last_step: bool = False) -> bool:
        if not self._should_save(curr_step, last_step):
            return False
        started = time.monotonic()
        with process_group.patient(self._run, "saving"):
            self._is_saving = True
            try:
                super()._save(curr_step, last_step)
            except SAVE_ERRORS as error:
                checkpoints.die_of_failed_save(self._run, error)
            finally:
                self._is_saving = False
            if self.save_future is None:
                self._publish(curr_step, started)
            else:
                self.save_future = self._publisher.submit(
                    self._publish, curr_step, started, after=self.save_future
                )
        self.rows.saved(time.monotonic() - started)
        return True

    def _publish(self, step: int, started: float, *, after: Future[Any] | None = None) -> None:
        """Give a checkpoint its name, when all ranks have written their files and noted their sums.

        Args:
            after: the end of a save in the background, which is awaited.
        """
        if after:
            after.result()
        written = checkpoints.partial(self._run.checkpoint_dir, step)
        note_sums(self._run, written, written.glob(f"__{self._run.rank}_*"))
        dist.barrier(group=self.pg)
        if self._run.is_first:
            keep, settings = self.settings.keep_checkpoints, self.settings
            final = checkpoints.publish(
                written, step, run=self._run, keep=keep, started=started, settings=settings
            )
            print(f"step {step}: checkpoint {final} after {time.monotonic() - started:.2f} s")

    def _wait_for_saving(self) -> None:
        try:
            super()._wait_for_saving()
        except SAVE_ERRORS as error:
            checkpoints.die_of_failed_save(self._run, error)

    def _load(self, step: int = -1) -> bool:
        newest = checkpoints.resume_from(self._run)
        try:
            with own_options(*self.states[OPTIMIZER]):
                loaded = bool(super()._load(step))
            for schedule in self.states[LR_SCHEDULER]:
                for group, rate in zip(schedule.optimizer.param_groups, schedule.get_last_lr(), strict=True):
                    group["lr"] = rate
            return loaded
        except (Exception, CheckpointException) as error:  # that is a BaseException
            check_place(newest, error)
            if newest is None:
                die(
                    f"{self.initial_load_path} cannot be loaded into this model ({reason(error, line=-1)}): "
                    "give its MODEL and SIZE, or other weights as INIT_FROM."
                )
            checkpoints.give_up(newest, error)

    def dcp_load(
        self, state_dict: dict[str, Any], checkpoint_id: str, from_hf: bool, from_quantized: bool
    ) -> None:
        """Load; from published weights all but LoRA's, which stay as they are."""
        if from_hf:
            state_dict = {name: each for name, each in state_dict.items() if ".lora_" not in name}
            self.sd_adapter.is_quantized = from_quantized
        super().dcp_load(state_dict, checkpoint_id, from_hf, from_quantized)
        if from_hf:
            self.sd_adapter.is_quantized = False

    def _create_checkpoint_id(self, step: int, folder: str = "") -> str:  # noqa: ARG002
        where = checkpoints.partial if self._is_saving else checkpoints.path_of
        return str(where(self._run.checkpoint_dir, step))

    def _find_load_step(self, folder: str = "") -> int:  # noqa: ARG002
        found = checkpoints.resume_from(self._run)
        return checkpoints.step_of(found) if found else -1


def state_bytes(models: list[torch.nn.Module], *, own: bool = False) -> int:
    """Estimate the bytes of the parameters and, of those trained, the moments: all, or this rank's part."""
    parameters = [each for model in models for each in model.parameters()]
    return sum(
        (each.to_local() if own and isinstance(each, DTensor) else each).numel()
        * each.element_size()
        * (1 + ADAM_MOMENTS * each.requires_grad)
        for each in parameters
    )
