"""What a recipe computes with published weights, in titan's environment.

python titan_recipe.py CONFIG WEIGHTS: WEIGHTS is a folder with config.json. Prints the coefficient by which a
step moves the bias of the experts of the last layer, and the theta and scaling of its rotary embedding.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import sys
from pathlib import Path

import cpu  # of titan

cpu.install()

from config import base_of  # noqa: E402
from settings import Settings  # noqa: E402

recipe, weights = sys.argv[1:]
layer = base_of(Settings(config=recipe), Path(weights)).model_spec.model.layers[-1]
print(layer.moe and layer.moe.load_balance_coeff, layer.attention.rope.theta, layer.attention.rope.scaling)
