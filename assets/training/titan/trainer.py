"""torchtitan's trainer under this cluster's contract: world, stop, resume, outcome."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import corrections
import torch
from fields import FILE as SETTINGS
from fields import Settings
from rows import attention_flops, of_last_stage
from saving import state_bytes
from torchtitan.components.metrics import LoggerContainer, WandBLogger
from torchtitan.trainer import Trainer
from trainkit.loggers import MlflowLogger, name_wandb_run
from trainkit.run import process_group
from trainkit.run.files import write_whole
from trainkit.run.finite import end_diverged
from trainkit.run.run import Run, die
from trainkit.run.stopping import Saves


class ClusterTrainer(Trainer):
    """torchtitan's trainer, which stops when Slurm asks for it and records how the run ended."""

    def __init__(self, config: Trainer.Config, run: Run, settings: Settings) -> None:
        self._run, self._settings = run, settings
        corrections.install()
        # torchtitan does the same where it makes the process group itself.
        torch.autograd.set_multithreading_enabled(False)
        if run.is_first and settings.logger == "wandb":
            name_wandb_run(run)
        super().__init__(config)
        if isinstance(loggers := self.metrics_processor.logger, LoggerContainer):  # of the first rank
            if settings.logger == "wandb" and not any(isinstance(x, WandBLogger) for x in loggers._loggers):
                die("W&B refuses the run (see the line above): mend WANDB_API_KEY, or give LOGGER= for none.")
            if settings.logger == "mlflow":
                loggers.add_logger(MlflowLogger(run, config=config.to_dict()))

    def batch_generator(self, data_iterable: Any) -> Iterator[Any]:
        """Begin the rows behind the checkpoint, which torchtitan has just loaded, and return the batches.

        An export, which saves nothing, does not come here.
        """
        run, settings = self._run, self._settings
        size = state_bytes(self.model_parts) * self.parallel_dims.pp
        self.checkpointer.saves = Saves(run, settings, checkpoint_bytes=size, agree=process_group.agree)
        self.checkpointer.settings = settings
        if run.is_first:  # not before: the settings of a start that fails are not the run's
            noted = json.dumps(dataclasses.asdict(settings), indent=1)
            write_whole(run.run_dir / SETTINGS, noted + "\n")
        self.metrics_processor.begin(
            run,
            settings,
            self.step,
            self.checkpointer,
            attention=attention_flops(self.model_config, self.model_parts[0], self.config.training.seq_len),
        )
        self.checkpointer.rows = self.metrics_processor
        return map(self.metrics_processor.read, super().batch_generator(data_iterable))

    def train_step(self, data_iterator: Iterator[Any]) -> None:
        """Do one step, and agree with the other ranks whether to continue."""
        self.metrics_processor.start_clock()
        try:
            super().train_step(data_iterator)
        except RuntimeError as error:
            if "Loss is not finite" not in str(error):
                raise
            self.checkpointer.maybe_wait_for_saving()
            end_diverged(self._run, step=self.step, found=str(error).partition(" at ")[0])
        self.checkpointer.agree_to_stop(self.step)
        if self.checkpointer.is_stopping:  # the time of the notice is for the checkpoint
            self.config.validator.enable = False

    def pp_forward_backward_step(self, **batches: Any) -> torch.Tensor:
        """Return the loss, which the last stage computes, on the ranks of all stages."""
        return of_last_stage(super().pp_forward_backward_step(**batches), self)

    def should_continue_training(self) -> bool:
        """Return False behind the last step, and behind the one in which a stop was asked for."""
        return super().should_continue_training() and not self.checkpointer.is_stopping

    def state_dict(self) -> dict[str, Any]:
        """Return torchtitan's state with the tokens of all ranks, of which each one counts its own."""
        return {**super().state_dict(), "ntokens_seen": self.ntokens_seen * self._counting}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load it on any number of ranks."""
        super().load_state_dict(state_dict | {"ntokens_seen": state_dict["ntokens_seen"] // self._counting})

    @property
    def _counting(self) -> int:
        """Ranks that count tokens; ranks of tensor and pipeline parallelism have the same ones."""
        return int(self.parallel_dims.world_size // (self.parallel_dims.tp * self.parallel_dims.pp))

    def finish(self) -> bool:
        """Wait for the last checkpoint.

        Returns:
            True if every step is done.
        """
        with process_group.patient(self._run, "saving"):
            self.checkpointer.maybe_wait_for_saving()
            self.checkpointer.local.finish()
        is_done = self.step >= self.config.training.steps
        if is_done:
            self.checkpointer.local.close()
        return bool(is_done)
