"""Logits of torchtitan's llama3 debug model from one of titan's checkpoints, in titan's own environment.

python titan_logits.py CHECKPOINT TOKENIZER FILE: writes (tokens, logits) as a file of numpy.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import sys

import cpu  # of titan
import numpy as np
import torch
import torch.distributed.checkpoint as dcp

cpu.install()

from torchtitan.components.checkpointer.base import ModelWrapper  # noqa: E402
from torchtitan.models.llama3 import model_registry  # noqa: E402


def main() -> None:
    """Compute the logits of some tokens."""
    checkpoint, file = sys.argv[1:3]
    spec = model_registry("debugmodel", attn_backend="flex")
    model = spec.model.build()
    state = ModelWrapper(model).state_dict()
    dcp.load(state, checkpoint_id=checkpoint)
    model.load_state_dict(state)
    tokens = torch.arange(64).reshape(1, 64) * 7 % 500
    positions = torch.arange(64).reshape(1, 64)
    masks = model.get_attention_masks(positions=positions)
    with torch.no_grad():
        logits = model(tokens, positions=positions, attention_masks=masks)
    np.savez(file, tokens=tokens.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    main()
