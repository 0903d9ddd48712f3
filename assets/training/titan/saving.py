"""Checkpoints of torchtitan in the layout of every workload here: complete as soon as they have a name.

On GPUs the state is copied into pinned memory of the host while the next step computes; a thread then writes
it. torchtitan would write it from another process for each rank, with the copy in /dev/shm. The SIGTERM by
which Slurm stops a job ends such a process, and with it the save for which the stop waits.
"""

from __future__ import annotations

import os
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from batches import check_place
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.tensor import DTensor
from torchtitan.components.checkpointer.base import LR_SCHEDULER, MODEL, OPTIMIZER
from torchtitan.components.checkpointer.dcp import AsyncMode, CheckpointManager
from torchtitan.tools import utils
from trainkit.local_checkpoints import LocalCheckpoints
from trainkit.resuming import own_options
from trainkit.run import checkpoints, process_group
from trainkit.run.run import Run, die, reason
from trainkit.run.settings import TrainSettings, ranks_of_node
from trainkit.run.stopping import Saves, Stop
from trainkit.sizes import ADAM_MOMENTS
from trainkit.sums import files_of_rank, note_sums

if TYPE_CHECKING:
    from rows import Rows

# A rank's part on its node's disk is a checkpoint of one process, of which torch warns.
warnings.filterwarnings("ignore", "torch.distributed is disabled, unavailable or uninitialized")
SAVE_ERRORS = (OSError, RuntimeError, CheckpointException)
PINNED_SHARE = 0.5
"""Most of a node's memory that its ranks pin, which the system can then use for nothing else."""


class Stager(DefaultStager):
    """The copy of the state, which stays for the next save, in pinned memory by default."""

    def __init__(self, *, is_pinned: bool = True) -> None:
        # A CPU build of torch neither pins nor copies without waiting.
        is_pinned &= utils.device_type == "cuda"
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
        """torchtitan's options, and CHECKPOINT_LOCAL_EVERY."""

        local_every: int = 0

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
        self.local = LocalCheckpoints(self._run, every=config.local_every, is_sharded=True)
        self._local_copied: Future[Any] | None = None
        self._restored: Path | None = None
        if self.async_mode == AsyncMode.ASYNC_WITH_PINNED_MEM:
            self._pin(parts["model_parts"], copies=1 + self.local.writes)
        # A copy of its own, since a save to the shared file system may take minutes.
        self._local_stager = Stager(is_pinned=self.async_mode == AsyncMode.ASYNC_WITH_PINNED_MEM)
        if self._run.is_first:
            checkpoints.clear_partials(self._run.checkpoint_dir)
        dist.barrier()

    def _pin(self, models: list[torch.nn.Module], *, copies: int) -> None:
        """Prepare the copies into pinned memory, or choose another way if the host has too little memory."""
        needed = copies * ranks_of_node() * state_bytes(models, own=True)
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
        if self._local_copied:
            wait([self._local_copied])  # LocalCheckpoints reports its failure

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
        if self.local.due(curr_step) and not self.is_stopping:
            self._save_locally(curr_step)
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

    def _save_locally(self, step: int) -> None:
        """Begin to save this rank's part of the state, which is whole without those of others."""
        started = time.monotonic()
        states = self._flattened_model_states_sd()
        state = {name: x.state_dict() if isinstance(x, Stateful) else x for name, x in states.items()}
        with torch.no_grad():
            self._local_copied = self._local_stager.stage(state)
        if utils.device_type == "cpu":  # which would compute and copy at the same time
            wait([self._local_copied])
        self.local.save(step, self._local_copied, write_part)
        self.rows.saved(time.monotonic() - started, "local_save_s")

    def _publish(self, step: int, started: float, *, after: Future[Any] | None = None) -> None:
        """Give a checkpoint its name, when all ranks have written their files and noted their sums.

        Args:
            after: the end of a save in the background, which is awaited.
        """
        if after:
            after.result()
        written = checkpoints.partial(self._run.checkpoint_dir, step)
        note_sums(self._run, written, files_of_rank(written, self._run.rank))
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
        self._restored = self.local.restore(newest)
        try:
            with own_options(*self.states[OPTIMIZER]):
                loaded = bool(super()._load(step))
            for schedule in self.states[LR_SCHEDULER]:
                for group, rate in zip(schedule.optimizer.param_groups, schedule.get_last_lr(), strict=True):
                    group["lr"] = rate
            return loaded
        except (Exception, CheckpointException) as error:  # that is a BaseException
            check_place(self._restored or newest, error)
            if self._restored:
                self.local.forget(error)
                checkpoints.give_up(self._restored, error)
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
        if self._restored:
            dcp.load(state_dict, checkpoint_id=checkpoint_id, no_dist=True)
            self.states[MODEL].load_state_dict(state_dict)
            self._run.say(f"resuming from {self._restored}")
            return
        super().dcp_load(state_dict, checkpoint_id, from_hf, from_quantized)
        if from_hf:
            self.sd_adapter.is_quantized = False

    def _create_checkpoint_id(self, step: int, folder: str = "") -> str:  # noqa: ARG002
        if self._restored and not self._is_saving:
            return str(self._restored)
        where = checkpoints.partial if self._is_saving else checkpoints.path_of
        return str(where(self._run.checkpoint_dir, step))

    def _find_load_step(self, folder: str = "") -> int:  # noqa: ARG002
        if self._restored:
            return int(self._restored.parent.name.split(".")[0].removeprefix("step-"))
        found = checkpoints.resume_from(self._run)
        return checkpoints.step_of(found) if found else -1


def write_part(folder: Path, state: dict[str, Any]) -> None:
    """Write a rank's part of the state, as a checkpoint of one process; it is not flushed."""
    dcp.save(state, storage_writer=FileSystemWriter(folder, sync_files=False), no_dist=True)


def state_bytes(models: list[torch.nn.Module], *, own: bool = False) -> int:
    """Estimate the bytes of the parameters and, of those trained, the moments: all, or this rank's part."""
    parameters = [each for model in models for each in model.parameters()]
    return sum(
        (each.to_local() if own and isinstance(each, DTensor) else each).numel()
        * each.element_size()
        * (1 + ADAM_MOMENTS * each.requires_grad)
        for each in parameters
    )
