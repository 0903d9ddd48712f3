"""PROFILE_STEPS: torchtitan's profiler in one window of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchtitan.tools.profiler import Profiler
from torchtitan.tools.utils import device_module

WARMUP = 3
"""Steps before the window that are profiled and not recorded, as torchtitan's default."""


class Window(Profiler):
    """torchtitan's profiler, whose memory history begins and ends with the window."""

    @dataclass(kw_only=True, slots=True)
    class Config(Profiler.Config):
        """torchtitan's options, and the first step of the window; profile_freq is its last one."""

        first: int = 1

    _config: Any
    memory_profiler: Any

    def build_memory_profiler(self, **place: Any) -> Any:
        """Begin the history of the memory, if the next step is in the window."""
        is_inside = self._config.first - 1 <= place["global_step"] < self._config.profile_freq
        return super().build_memory_profiler(**place) if is_inside else None

    def step(self) -> None:
        """Note that a step is done; with the window's last one, the profiler has written the history."""
        super().step()
        self._global_step += 1
        if not self.memory_profiler:
            self.memory_profiler = self.build_memory_profiler(
                global_step=self._global_step, base_folder=self._base_folder, leaf_folder=self._leaf_folder
            )
        elif self._global_step >= self._config.profile_freq:
            device_module.memory._record_memory_history(enabled=None)
            self.memory_profiler = None


def window(first: int, last: int, *, has_memory: bool) -> Window.Config:
    """Return the profiler's config for the steps from `first` to `last`.

    Args:
        has_memory: True where the device has a history of its memory: on GPUs.
    """
    return Window.Config(
        enable_profiling=True,
        profile_freq=last,
        profiler_active=last - first + 1,
        profiler_warmup=min(WARMUP, first - 1),
        profiler_repeat=1,
        enable_memory_snapshot=has_memory,
        first=first,
    )
