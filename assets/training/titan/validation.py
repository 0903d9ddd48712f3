"""Validations of titan: at the steps of EVAL_EVERY, over sequences that are always the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from batches import ShardLoader
from fields import Settings
from torchtitan.components.loss import IGNORE_INDEX
from torchtitan.components.validate import Validator
from trainkit.run import process_group
from trainkit.run.run import Run


class HeldBack(ShardLoader):
    """Loader of a validation: sequences after EVAL_SEQUENCES, which fill its last batches, have no labels."""

    @dataclass(kw_only=True, slots=True)
    class Config(ShardLoader.Config):
        """Options of the loader."""

        wanted: int = 0
        """Sequences of a validation over all ranks, at most the whole split."""

    def __init__(self, config: Config, **options: Any) -> None:
        super().__init__(config, **options)
        self._wanted = config.wanted

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        """Yield inputs and positions, and labels: each (local batch, sequence) int64."""
        for given, labels in super().__iter__():
            first = self._taken - (self._ranks - self._rank) * self._rows
            labels[max(0, self._wanted - first) :] = IGNORE_INDEX
            yield given, labels


class Validation(Validator):
    """torchtitan's validator at the steps of EVAL_EVERY, and after the last one."""

    config: Config

    @dataclass(kw_only=True, slots=True)
    class Config(Validator.Config):
        """torchtitan's options."""

        sequences: int = 0
        """Sequences of a validation over all ranks."""

    def __init__(self, config: Config, **parts: Any) -> None:
        steps = math.ceil(config.sequences / (parts["dp_world_size"] * parts["local_batch_size"]))
        # torchtitan sets `infinite` in the loader's config, which mixtures' configs lack; none of them ends.
        super().__init__(Validator.Config(steps=max(1, steps)), **parts)
        self.dl_config = config.dataloader

    def should_validate(self, step: int) -> bool:
        """Return True if a validation follows a step."""
        settings: Settings = self.metrics_processor.settings
        return settings.validates_after(step) or step == settings.max_steps

    def validate(self, model_parts: list[torch.nn.Module], step: int) -> None:
        """Validate, while the watch for hangs waits."""
        self.metrics_processor.start_clock()
        self.metrics_processor.stages = self if self.parallel_dims.pp_enabled else None
        with process_group.patient(Run.from_environment(), "validating"):
            super().validate(model_parts, step)
