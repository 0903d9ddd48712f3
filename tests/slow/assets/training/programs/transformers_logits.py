"""Logits of a folder of weights by transformers, in gpt2's environment.

python transformers_logits.py FOLDER FILE: FILE has tokens and logits of another program (numpy). Prints the
greatest difference. With --make instead of a file: writes a small Llama with random weights into FOLDER.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def main() -> None:
    """Compare, or make."""
    folder, file = sys.argv[1:3]
    if file == "--make":
        torch.manual_seed(1)
        config = LlamaConfig.from_json_file(f"{folder}/config.json")
        LlamaForCausalLM(config).save_pretrained(folder)
        return
    found = np.load(file)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.from_numpy(found["tokens"])).logits.numpy()
    print(float(np.abs(logits - found["logits"]).max()))


if __name__ == "__main__":
    main()
