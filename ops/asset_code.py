"""Loads a custom resource's own code (assets/), so that trainctl and a deploy decide and report alike."""

import sys
from functools import cache
from importlib import import_module
from types import SimpleNamespace

from training_cluster.paths import ASSETS


@cache
def asset_code(folder: str, *modules: str) -> SimpleNamespace:
    """Import modules of a Lambda function under their names there, and remove these from sys.modules."""
    code = str(ASSETS / folder)
    former = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    sys.path.insert(0, code)
    try:
        return SimpleNamespace(**{name: import_module(name) for name in modules})
    finally:
        sys.path.remove(code)
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(former)
