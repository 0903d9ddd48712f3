"""Metrics of torchtitan as the rows of metrics.jsonl; its own loggers (TensorBoard, W&B) write as well."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from settings import Settings
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.validate import Validator
from torchtitan.tools import utils
from trainkit.run import process_group
from trainkit.run.finite import check_finite
from trainkit.run.run import Run
from trainkit.run.steps import Steps


class Rows(MetricsProcessor):
    """torchtitan's metrics, with a row of metrics.jsonl for each step."""

    @dataclass(kw_only=True, slots=True)
    class Config(MetricsProcessor.Config):
        """torchtitan's options."""

    ntokens_since_last_log: int
    time_last_log: float

    def begin(self, run: Run, settings: Settings, step: int, checkpoints: Any) -> None:
        """Remove the rows behind the step from which the run goes on."""
        self._run, self.settings, self._checkpoints = run, settings, checkpoints
        flops = None if self.has_quantization else self.num_flops_per_token
        self._steps = Steps(
            run=run, settings=settings, after=step, device=utils.device_type, flops_per_token=flops
        )

    def start_clock(self) -> None:
        """Begin a step or a validation, to which the time since the last one does not belong."""
        self.ntokens_since_last_log = 0
        self.data_loading_times.clear()
        self.time_last_log = time.perf_counter()

    def should_log(self, step: int) -> bool:  # noqa: ARG002
        """Return True: torchtitan passes on, and checks, the numbers of logged steps alone."""
        return True

    def log(
        self,
        step: int,
        global_avg_loss: float,
        global_max_loss: float,  # noqa: ARG002
        grad_norm: float,
        extra_metrics: dict[str, Any] | None = None,
    ) -> None:
        """Write one step, and die unless its numbers are finite."""
        step_s = time.perf_counter() - self.time_last_log
        extra = dict(extra_metrics or {})
        # All ranks have as many tokens a step; those of a replica share theirs.
        ranks = self._run.world_size / self.parallel_dims.non_data_parallel_size
        rate = self.ntokens_since_last_log * ranks / step_s
        self._steps.add(
            step=step,
            loss=global_avg_loss,
            learning_rate=next((float(v) for name, v in extra.items() if "lr" in name.lower()), 0.0),
            tokens=int(extra.get("n_tokens_seen", 0)),
            tokens_per_s=rate,
            step_s=step_s,
            data_s=sum(self.data_loading_times),
        )
        check_finite(
            self._run,
            step=step,
            loss=global_avg_loss,
            gradient_norm=grad_norm,
            finish_saving=self._checkpoints.maybe_wait_for_saving,
        )
        if step == self._steps.after + 1:
            process_group.shorten()
        self.logger.log(
            {"loss": global_avg_loss, "grad_norm": grad_norm, "tokens_per_s": rate, **extra}, step
        )

    def log_validation(
        self,
        loss: float,
        step: int,
        extra_metrics: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> None:
        """Write the validation loss of a step."""
        seconds = time.perf_counter() - self.time_last_log
        self._steps.add_validation(step=step, loss=loss, seconds=seconds)
        self.logger.log({"val_loss": loss}, step)


class Validation(Validator):
    """torchtitan's validator at the steps of EVAL_EVERY, and after the last one."""

    config: Config

    @dataclass(kw_only=True, slots=True)
    class Config(Validator.Config):
        """torchtitan's options."""

    def __init__(self, config: Config, **parts: Any) -> None:
        # torchtitan sets `infinite` in the loader's config, which those of mixtures lack; none of them ends.
        super().__init__(Validator.Config(steps=config.steps), **parts)
        self.config, self.dl_config = config, config.dataloader

    def should_validate(self, step: int) -> bool:
        """Return True if a validation follows a step."""
        settings: Settings = self.metrics_processor.settings
        return settings.validates_after(step) or step == settings.max_steps

    def validate(self, model_parts: list[torch.nn.Module], step: int) -> None:
        """Validate, while the watch for hangs waits."""
        self.metrics_processor.start_clock()
        with process_group.patient(Run.from_environment(), "validating"):
            super().validate(model_parts, step)
