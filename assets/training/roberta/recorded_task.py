"""fairseq's masked_lm task, with a record of each update, a stop on SIGTERM and this app's checkpoints.

fairseq calls the task's own methods at every update on every rank, with sums over all ranks. The record needs
only these, and a stop is one of the sums. Saving has no such method, so save() replaces
fairseq.checkpoint_utils.save_checkpoint, which writes names that depend on the epoch, copies gigabytes, and
overwrites the file that a resume reads.
"""

# No `from __future__ import annotations`: fairseq reads the types of its configuration's fields.

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from fairseq import utils
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from settings import CHECKPOINT_BYTES, Settings, computing_parameters, parameters
from trainkit.memory import enough_memory, smaller_micro_steps
from trainkit.run import checkpoints, process_group
from trainkit.run.mfu import flops_per_token
from trainkit.run.run import Run
from trainkit.run.steps import Steps, peak_bytes
from trainkit.run.stopping import Saves, Stop
from trainkit.sentinel import Sentinel

CHECKPOINT = "checkpoint.pt"
PROGRESS = "progress.json"


class Recorder:
    """The record of one rank's run; the first rank writes metrics.jsonl and checkpoints."""

    def __init__(
        self,
        *,
        run: Run,
        settings: Settings,
        symbols: int,
        progress: Mapping[str, Any],
        dictionary_sha256: str,
    ) -> None:
        self.run, self.settings = run, settings
        self.cfg: Any = None
        """The configuration of fairseq, once it is parsed."""
        self.step: int = progress.get("step", 0)
        self.tokens: int = progress.get("tokens", 0)
        self._saved = self.step
        self.stopped = False
        self.learning_rate = 0.0
        self._dictionary_sha256 = dictionary_sha256
        self._stop = Stop()
        size = parameters(settings, symbols) * CHECKPOINT_BYTES
        self._saves = Saves(run, settings, checkpoint_bytes=size, agree=process_group.agree)
        self._rows = Steps(
            run=run,
            settings=settings,
            after=self.step,
            device=settings.device,
            flops_per_token=flops_per_token(
                computing_parameters(settings, symbols),
                settings.roberta_layers,
                settings.roberta_width,
                settings.roberta_context,
            ),
        )
        self._idle_since: float | None = None
        self._data_s: float | None = None
        self._memory_bytes = 0

    @property
    def asked_to_stop(self) -> bool:
        """True if this rank had a SIGTERM."""
        return self._stop.asked

    def start_clock(self) -> None:
        """Record the start of the first epoch; the time between later epochs is waiting for data."""
        if self._idle_since is None:
            self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time since the last update, which was neither training nor waiting for data."""
        self._idle_since = time.perf_counter()

    def begin(self) -> None:
        """Record that the batches of an update have arrived."""
        if self._data_s is None:
            self._data_s = self._since_idle()

    def updated(self, learning_rate: float) -> None:
        """Record the optimizer's step, before fairseq resets the memory's peak and sets the next rate."""
        self.learning_rate = learning_rate
        self._memory_bytes = max(self._memory_bytes, peak_bytes(self.settings.device))

    def _since_idle(self) -> float:
        return 0.0 if self._idle_since is None else time.perf_counter() - self._idle_since

    def end(self, outputs: Sequence[Mapping[str, Any]], *, grad_norm: float | None) -> None:
        """Record an update, and end the training if any rank was asked to stop."""

        def total(key: str) -> float:
            return float(sum(output[key] for output in outputs))

        # In nats a masked token; fairseq's own log divides by ln 2.
        loss = total("loss") / total("sample_size")
        tokens = round(total("ntokens"))
        step_s = self._since_idle()
        self.step += 1
        self.tokens += tokens
        if self.step == self._rows.after + 1:
            process_group.shorten()
        self._saves.due(self.step)
        self.cfg.checkpoint.save_interval_updates = self._saves.every  # fairseq reads it next
        if total("stop"):
            self._end_here()
        self._rows.add(
            step=self.step,
            loss=loss,
            grad_norm=grad_norm,
            learning_rate=self.learning_rate,
            tokens=self.tokens,
            tokens_per_s=tokens / step_s,
            step_s=step_s,
            data_s=self._data_s or 0.0,
            memory_bytes=self._memory_bytes,
        )
        self._data_s = None
        self.restart_clock()

    def validated(self, loss: float) -> None:
        """Write a validation: its mean loss over the masked tokens of all ranks, in nats."""
        self._rows.add_validation(step=self.step, loss=loss, seconds=self._since_idle())

    def _end_here(self) -> None:
        """Let fairseq save and end; every rank has the same sum, so all ranks end at the same step."""
        self.stopped = True
        self.cfg.optimization.max_update = self.step
        # The checkpoint needs the two minutes that Slurm gives.
        self.cfg.dataset.disable_validation = True

    def save(self, _cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None) -> str | None:
        """Save fairseq's checkpoint (model, optimizer, data position) as step-<n>/checkpoint.pt."""
        if self.step == self._saved:  # an update whose gradients overflowed does not count
            return None
        self._saved = self.step
        begin, run = time.perf_counter(), self.run
        trainer.consolidate_optimizer()
        path = None
        if trainer.should_save_checkpoint_on_current_rank:
            path = str(checkpoints.path_of(run.checkpoint_dir, self.step))
            with (
                checkpoints.saving(run),
                checkpoints.writing(run, self.step, settings=self.settings) as folder,
            ):
                micro_step = run.world_size * self.settings.batch_size
                position = epoch_itr.state_dict() | {"micro_step": micro_step}
                state = {"train_iterator": position, "val_loss": val_loss}
                trainer.save_checkpoint(str(folder / CHECKPOINT), state)
                progress = {
                    "step": self.step,
                    "tokens": self.tokens,
                    "dictionary_sha256": self._dictionary_sha256,
                }
                (folder / PROGRESS).write_text(json.dumps(progress) + "\n", encoding="utf-8")
        self._rows.saved(time.perf_counter() - begin)
        self.restart_clock()
        return path


@dataclass
class RecordedMaskedLMConfig(MaskedLMConfig):
    """The task's configuration, with new data processes in each epoch.

    fairseq keeps the processes, which do not know of a new epoch. All epochs would mask the same tokens, as
    BERT's did, but a resumed run would mask others.
    """

    reuse_dataloader: bool = field(default=False)
    persistent_workers: bool = field(default=False)


@register_task("recorded_masked_lm", dataclass=RecordedMaskedLMConfig)
class RecordedMaskedLM(MaskedLMTask):
    """The task that fairseq makes. Its recorder is an attribute of the class, set beforehand."""

    recorder: Recorder
    sentinel: Sentinel | None = None

    def begin_epoch(self, *arguments: Any) -> None:
        """Record the start of an epoch; the time before the first is set-up."""
        super().begin_epoch(*arguments)
        self.recorder.start_clock()

    def train_step(self, **named: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Do forward and backward of one micro-step; fairseq sums the result over the ranks."""
        self.recorder.begin()
        if self.recorder.settings.sentinel_every and not self.sentinel:
            self.sentinel = self._make_sentinel(**named)
        with self.enough_memory():  # fairseq would go on without this batch, while other ranks wait
            loss, sample_size, output = super().train_step(**named)
        return loss, sample_size, {**output, "stop": int(self.recorder.asked_to_stop)}

    def enough_memory(self) -> AbstractContextManager[None]:
        """Die with one sentence if the block runs out of a GPU's memory."""
        given, otherwise = self.recorder.settings, "a smaller ROBERTA_CONTEXT or model"
        used = f"BATCH_SIZE={given.batch_size} and ROBERTA_CONTEXT={given.roberta_context}"
        return enough_memory(used, lambda: smaller_micro_steps(given, otherwise))

    def _make_sentinel(self, *, sample: Any, model: Any, criterion: Any, **_: Any) -> Sentinel:
        """Return a sentinel whose batch is the first rank's first one."""
        device, batch = next(model.parameters()).device, process_group.agree(utils.move_to_cpu(sample))
        batch = utils.apply_to_sample(lambda tensor: tensor.to(device), batch)
        run, every = self.recorder.run, self.recorder.settings.sentinel_every
        return Sentinel(run, every=every, model=model, loss_of=lambda own: criterion(own, batch)[0])

    def optimizer_step(self, optimizer: Any, *arguments: Any, **named: Any) -> None:
        """Make the update, and record its learning rate."""
        learning_rate = optimizer.get_lr()
        with self.enough_memory():
            super().optimizer_step(optimizer, *arguments, **named)
        self.recorder.updated(learning_rate)

    def reduce_metrics(self, logging_outputs: Sequence[Mapping[str, Any]], criterion: Any) -> None:
        """Record the sums of an update; fairseq also calls it with sums of validation batches."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("stop" in output for output in logging_outputs):
            # fairseq has just logged it, unless it is not finite.
            norm = metrics.get_meter("train_inner", "gnorm")
            self.recorder.end(logging_outputs, grad_norm=float(norm.val) if norm else None)
            if self.sentinel and self.sentinel.due(self.recorder.step) and not self.recorder.stopped:
                self.sentinel.compare(self.recorder.step)
                self.recorder.restart_clock()

    def post_validate(self, _model: Any, stats: Mapping[str, Any], _agg: Any) -> None:
        """Record the loss of a validation, and exclude its time from a step; fairseq's loss is in bits."""
        self.recorder.validated(float(stats["loss"]) * math.log(2))
        self.recorder.restart_clock()
