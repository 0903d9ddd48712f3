"""GPT-2 as transformers defines it, with its loss, and its optimizer."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import torch
from settings import Settings, Shape
from trainkit.run.run import die
from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NO_TOKEN = -100
CAUSAL = "causal"
"""Name of an attention without a mask, since torch's flash kernels take none.

transformers makes a causal mask when torch before 2.14 compiles the model, but makes no mask for a name that
is not one of its own. Its function for SDPA then asks for the causal kernel. config.json has no such name.
"""
AttentionInterface.register(CAUSAL, sdpa_attention_forward)
# transformers' implementation of GPT-2's GELU reads the widest activations eight times, torch's once.
SLOW_GELU, FAST_GELU = "gelu_new", "gelu_pytorch_tanh"


class GPT2(GPT2LMHeadModel):
    """transformers' model, whose forward pass returns the loss: a compiled one then writes no fp32 logits."""

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy (nats a token) of each token after the first, without NO_TOKEN."""
        logits = super().forward(input_ids=input_ids.clamp(min=0)).logits
        # The last position has no next token, but leaving it out of the logits would copy all of them.
        following = torch.nn.functional.pad(input_ids[:, 1:], (0, 1), value=NO_TOKEN)
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), following.flatten(), ignore_index=NO_TOKEN
        )


def make_model(settings: Settings, shape: Shape, weights: Path | None) -> GPT2:
    """Make GPT-2 with random weights, or with a folder's."""
    drop = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), settings.gpt2_dropout)
    if weights:
        logging.getLogger("transformers").setLevel(logging.ERROR)
        try:
            config = GPT2Config.from_pretrained(str(weights), local_files_only=True, use_cache=False, **drop)
            if config.activation_function == SLOW_GELU:
                config.activation_function = FAST_GELU
            # Weights are fp32 regardless of the file's type; autocast converts the rest.
            model = GPT2.from_pretrained(
                str(weights),
                config=config,
                local_files_only=True,
                dtype=torch.float32,
                attn_implementation=CAUSAL,
            )
        except (OSError, RuntimeError, ValueError) as error:
            die(f"the weights in {weights} cannot be read ({str(error).splitlines()[0]}): replace them.")
        assert isinstance(model, GPT2)
        return model
    config = GPT2Config(
        vocab_size=shape.vocab_size,
        n_positions=shape.context,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        use_cache=False,
        activation_function=FAST_GELU,
        bos_token_id=0,
        eos_token_id=0,
        architectures=["GPT2LMHeadModel"],
        attn_implementation=CAUSAL,
        **drop,
    )
    return GPT2(config)


def make_optimizer(model: torch.nn.Module, settings: Settings) -> torch.optim.AdamW:
    """Make AdamW, which decays matrices but not biases and norms. Each step sets the learning rate."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    # Fused: one kernel for all parameters, which saves about 5 % of a step on a CPU, too.
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)


def learning_rate(step: int, settings: Settings, highest: float) -> float:
    """Return the rate of a step: linear warm-up, then a cosine down to a tenth of the highest."""
    if step <= settings.warmup_steps:
        return highest * step / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, settings.max_steps - settings.warmup_steps)
    return highest * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
