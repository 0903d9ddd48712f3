"""Print what a recipe computes with published weights, in titan's environment.

python titan_recipe.py CONFIG [WEIGHTS]: WEIGHTS is a folder with config.json. Prints as JSON the coefficient
by which a step moves the bias of the experts of the last layer, the theta and scaling of its rotary
embedding, and config.json of an export.
"""

# mypy: disable-error-code="import-not-found"
import json
import sys
from pathlib import Path

import cpu  # of titan

cpu.install()

from config import base_of  # noqa: E402
from exporting import hf_config  # noqa: E402
from settings import Settings  # noqa: E402

recipe, *weights = sys.argv[1:]
spec = base_of(Settings(config=recipe), Path(weights[0]) if weights else None).model_spec
layer = spec.model.layers[-1]
bias, rope = layer.moe and layer.moe.load_balance_coeff, layer.attention.rope
print(json.dumps([bias, rope.theta, rope.scaling, hf_config(spec, weights[0] if weights else None)]))
