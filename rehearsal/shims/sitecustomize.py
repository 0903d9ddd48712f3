"""Python reads this at its start where rehearsal/shims is on PYTHONPATH: mends torch for Megatron's core.

For rehearsals of gpt2-megatron alone: Megatron's core asks for CUDA devices by name, also on CPUs. Nothing
that is copied to a cluster has or names it, so no job on AWS can import it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class _BeforeMegatron:
    """Is asked for every module before it is imported, and finds none."""

    @classmethod
    def find_spec(
        cls, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> None:
        """Mend torch when Megatron's core is about to be imported; torch alone stays as it is."""
        if name == "megatron.core":
            sys.meta_path.remove(cls)
            # It lies beside this file.
            importlib.import_module("cuda_on_cpu").mend(importlib.import_module("torch"))


if os.environ.get("TRAINING_REHEARSAL") == "1":
    sys.meta_path.insert(0, _BeforeMegatron)
