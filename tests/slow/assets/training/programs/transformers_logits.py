"""Logits of a folder of weights by transformers, in gpt2's environment.

python transformers_logits.py FOLDER FILE: FILE has tokens and logits of another program (numpy). Prints the
greatest difference. With --make instead of a file: writes random weights into FOLDER, by its config.json.
"""

# mypy: disable-error-code="import-not-found"
import sys

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM


def main() -> None:
    """Compare, or make."""
    folder, file = sys.argv[1:3]
    if file == "--make":
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
        # Norms of 1, so that layers matter; of gpt_oss, torchtitan's experts would differ too much in bf16.
        of_norms = 0.0 if model.config.model_type == "gpt_oss" else 1.0
        for name, parameter in model.named_parameters():  # biases and sinks begin as zeros
            torch.nn.init.normal_(parameter, mean=of_norms if "norm" in name else 0.0, std=0.02)
        model.save_pretrained(folder)
        return
    found = np.load(file)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.from_numpy(found["tokens"])).logits.numpy()
    print(float(np.abs(logits - found["logits"]).max()))


if __name__ == "__main__":
    main()
