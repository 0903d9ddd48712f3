"""The deploy's own code of a custom resource (assets/), so that trainctl says the same, in its words."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import SimpleNamespace

from training_cluster.paths import ASSETS


@cache
def asset_code(folder: str, *modules: str) -> SimpleNamespace:
    """Modules of a function, by the plain names that they have in it; no trace of these is left here."""
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
