"""GPT-2 trained with transformers alone: its model and its loss, torch's AdamW, a loop.

    python transformers_loop.py tokens.bin LAYERS HEADS WIDTH CONTEXT VOCABULARY BATCH STEPS

`tokens.bin` holds uint16 ids. Runs as one process on the CPU, in float32, and prints a line per step.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> None:
    """Train the model on random windows of the tokens."""
    layers, heads, width, context, vocabulary, batch, steps = map(int, sys.argv[2:])
    tokens = np.memmap(Path(sys.argv[1]), dtype=np.uint16, mode="r")
    torch.manual_seed(1337)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=context,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        # The default ids exceed a vocabulary that is smaller than GPT-2's own.
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    random = np.random.default_rng(1337)
    for step in range(1, steps + 1):
        starts = random.integers(0, len(tokens) - context, batch)
        rows = np.stack([tokens[start : start + context].astype(np.int64) for start in starts])
        ids = torch.from_numpy(rows)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
