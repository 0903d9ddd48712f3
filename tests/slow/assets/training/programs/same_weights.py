"""Says whether two folders of safetensors hold the same tensors; in gpt2's environment.

python same_weights.py FOLDER FOLDER [TOLERANCE]: without a tolerance bit by bit.
"""

# mypy: disable-error-code="import-not-found"
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file


def read(folder: str) -> dict[str, torch.Tensor]:
    """Read all tensors of a folder."""
    found: dict[str, torch.Tensor] = {}
    for file in Path(folder).glob("*.safetensors"):
        found |= load_file(file)
    return found


first, second = map(read, sys.argv[1:3])
most = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
names = sorted(first.keys() ^ second.keys())
names += [
    name
    for name in first.keys() & second.keys()
    if first[name].shape != second[name].shape or not (first[name] - second[name]).abs().max() <= most
]
print(f"these differ: {names}" if names else "equal")
