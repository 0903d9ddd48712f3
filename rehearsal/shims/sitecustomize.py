"""Start-up hook of Python where rehearsal/shims is on PYTHONPATH: changes torch for Megatron's core.

Only rehearsals of gpt2-megatron use it: Megatron's core requests CUDA devices by name, even on CPUs. No file
that is copied to a cluster contains or names it, so no job on AWS can import it.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class _BeforeMegatron:
    """An importer that is asked for every module and finds none."""

    @classmethod
    def find_spec(
        cls, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> None:
        """Change torch when Megatron's core is about to be imported; torch alone stays unchanged."""
        if name == "megatron.core":
            sys.meta_path.remove(cls)
            # cuda_on_cpu.py is beside this file.
            importlib.import_module("cuda_on_cpu").mend(importlib.import_module("torch"))


if os.environ.get("TRAINING_REHEARSAL") == "1":
    sys.meta_path.insert(0, _BeforeMegatron)
