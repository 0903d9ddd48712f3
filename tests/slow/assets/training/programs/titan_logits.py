"""Logits of a model of torchtitan from one of titan's checkpoints, in titan's own environment.

python titan_logits.py MODEL WEIGHTS CHECKPOINT FILE: writes (tokens, logits) as a file of numpy. WEIGHTS is
the folder from which the run began, or the one that it exported.
"""

# mypy: disable-error-code="import-not-found"
import sys
from pathlib import Path

import cpu  # of titan
import numpy as np
import torch
import torch.distributed.checkpoint as dcp

cpu.install()

import corrections  # noqa: E402
from config import model_of  # noqa: E402
from settings import Settings  # noqa: E402
from torchtitan.components.checkpointer.base import ModelWrapper  # noqa: E402


def main() -> None:
    """Compute the logits of some tokens."""
    corrections.install()
    name, weights, checkpoint, file = sys.argv[1:]
    model = model_of(Settings(model=name, size="debugmodel", device="cpu"), Path(weights)).model.build()
    state = ModelWrapper(model).state_dict()
    dcp.load(state, checkpoint_id=checkpoint)
    model.load_state_dict(state)
    # More than gpt_oss's window.
    positions = torch.arange(160).reshape(1, 160)
    tokens = positions * 7 % 500
    masks = model.get_attention_masks(positions=positions)
    with torch.no_grad():
        logits = model(tokens, positions=positions, attention_masks=masks)
    np.savez(file, tokens=tokens.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    main()
