"""Logits of one of gpt2-megatron's checkpoints by Megatron's core, in that workload's own environment.

python megatron_logits.py CHECKPOINT FILE: writes tokens and logits as a file of numpy.
"""

# mypy: disable-error-code="import-not-found"
import dataclasses
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from exporting import read_piece  # of gpt2-megatron, as model and settings
from megatron.core import parallel_state
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from model import make_model
from settings import Settings


def main() -> None:
    """Compute the logits of some tokens, as one rank."""
    checkpoint, file = Path(sys.argv[1]), sys.argv[2]
    noted = json.loads((checkpoint / "progress.json").read_text())
    names = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{name: value for name, value in noted.items() if name in names})
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)
    model_parallel_cuda_manual_seed(1)
    model = make_model(settings, torch.device("cpu"))
    model.load_state_dict(read_piece(checkpoint, 0, 0), strict=False)
    model.eval()
    tokens = torch.arange(settings.gpt2_context).reshape(1, -1) * 7 % settings.vocab_size
    with torch.no_grad():
        logits = model(tokens, torch.arange(settings.gpt2_context).reshape(1, -1), None)
    np.savez(file, tokens=tokens.numpy(), logits=logits[..., : settings.vocab_size].numpy())


if __name__ == "__main__":
    main()
