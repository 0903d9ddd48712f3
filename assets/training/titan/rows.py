"""Metrics of torchtitan as the rows of metrics.jsonl; its own loggers (TensorBoard, W&B) write as well."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from fields import Settings
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.tools import utils
from trainkit.run import process_group
from trainkit.run.finite import check_finite
from trainkit.run.mfu import with_frozen_weights
from trainkit.run.run import Run
from trainkit.run.steps import Steps


def attention_flops(config: Any, model: torch.nn.Module, seq_len: int) -> float:
    """Return the operations of a token's attention to a whole sequence: those that grow with its length."""
    logging.disable(logging.INFO)  # torchtitan logs the parameters that it counts
    flops = [config.get_nparams_and_flops(model, length)[1] for length in (1, seq_len)]
    logging.disable(logging.NOTSET)
    return float(flops[1] - flops[0]) * seq_len / (seq_len - 1)


def of_last_stage(loss: torch.Tensor, stages: Any) -> torch.Tensor:
    """Return a pipeline's loss on the ranks of all stages; only those of the last one have it.

    Args:
        stages: torchtitan's trainer or validator.
    """
    group = stages.parallel_dims.get_mesh("pp").get_group()
    loss = loss.detach() if stages.pp_has_last_stage else torch.zeros_like(loss)
    dist.all_reduce(loss, group=group)
    return loss


class Rows(MetricsProcessor):
    """torchtitan's metrics, with a row of metrics.jsonl for each step."""

    @dataclass(kw_only=True, slots=True)
    class Config(MetricsProcessor.Config):
        """torchtitan's options."""

    ntokens_since_last_log: int
    num_flops_per_token: float
    time_last_log: float
    stages: Any
    """The validator, where it has stages of a pipeline."""

    def __init__(self, config: Config, **parts: Any) -> None:
        # With this schedule torchtitan's loggers are the first rank's, which has the loss with each one here.
        super().__init__(config, **parts | {"pp_schedule": "ZBVZeroBubble"})

    def begin(self, run: Run, settings: Settings, step: int, checkpoints: Any, *, attention: float) -> None:
        """Remove the rows after the step from which the run continues.

        Args:
            attention: operations of a token's attention to a whole sequence, a part of the token's.
        """
        self._run, self.settings, self._checkpoints = run, settings, checkpoints
        self._attention = attention
        if settings.lora_rank:
            self.num_flops_per_token = with_frozen_weights(self.num_flops_per_token, attention)
        flops = None if self.has_quantization else self.num_flops_per_token
        self._steps = Steps(
            run=run, settings=settings, after=step, device=utils.device_type, flops_per_token=flops
        )

    def start_clock(self) -> None:
        """Begin a step or a validation, to which the time since the last one does not belong."""
        self.ntokens_since_last_log = 0
        self.data_loading_times.clear()
        self._tokens = self._pairs = 0
        self.time_last_log = time.perf_counter()

    def read(self, batch: tuple[dict[str, torch.Tensor], Any]) -> tuple[dict[str, torch.Tensor], Any]:
        """Return a batch, and count its pairs of tokens of one document, which alone attend to each other."""
        positions = batch[0].get("positions")
        if positions is not None:
            self._tokens += positions.numel()
            # The positions of a document of n tokens, 0 to n - 1, give n squared.
            self._pairs += int((2 * positions.long() + 1).sum())
        return batch

    def _flops_per_token(self) -> float | None:
        """Return the operations of a token in the batches of this step; None if they are unknown."""
        if self.has_quantization or not self._tokens:
            return None
        attended = self._pairs / self._tokens / self.settings.seq_len
        return float(self.num_flops_per_token - self._attention * (1 - attended))

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
        # All ranks have as many tokens a step; the ranks of a replica share theirs.
        ranks = self._run.world_size / self.parallel_dims.non_data_parallel_size
        rate = self.ntokens_since_last_log * ranks / step_s
        self._steps.add(
            step=step,
            loss=global_avg_loss,
            grad_norm=grad_norm,
            learning_rate=next((float(v) for name, v in extra.items() if "lr" in name.lower()), 0.0),
            tokens=int(extra.get("n_tokens_seen", 0)),
            tokens_per_s=rate,
            step_s=step_s,
            data_s=sum(self.data_loading_times),
            flops_per_token=self._flops_per_token(),
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

    def saved(self, seconds: float, name: str = "save_s") -> None:
        """Note the seconds for which a save has just kept the steps waiting."""
        self._steps.saved(seconds, name)

    def log_validation(
        self,
        loss: float,
        step: int,
        extra_metrics: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> None:
        """Write the validation loss of a step."""
        if self.stages:
            loss = of_last_stage(torch.tensor(loss, device=utils.device_type), self.stages).item()
        seconds = time.perf_counter() - self.time_last_log
        self._steps.add_validation(step=step, loss=loss, seconds=seconds)
        self.logger.log({"val_loss": loss}, step)
