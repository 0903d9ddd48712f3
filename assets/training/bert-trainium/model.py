"""BERT with both heads of its pretraining, by transformers, and the optimizer of phase 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from devices import CpuDevice
from masking import Batch
from pairs import Special
from settings import Settings
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForPreTraining

# Shared with the embeddings' matrix and the head's bias, so a checkpoint has them once.
TIED = frozenset({"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"})


def make_model(settings: Settings, special: Special) -> BertForPreTraining:
    """Return a model with random weights, drawn by torch's seed."""
    config = BertConfig(
        vocab_size=settings.vocab_size,
        hidden_size=settings.bert_width,
        num_hidden_layers=settings.bert_layers,
        num_attention_heads=settings.bert_heads,
        intermediate_size=4 * settings.bert_width,
        # BERT has 512 positions although phase 1 uses fewer, since phase 2 continues with longer sequences.
        max_position_embeddings=512,
        hidden_dropout_prob=settings.bert_dropout,
        attention_probs_dropout_prob=settings.bert_dropout,
        pad_token_id=special.pad,
        architectures=["BertForPreTraining"],
        # Matrix products and a softmax, which Neuron's compiler recognizes as attention.
        attn_implementation="eager",
    )
    return BertForPreTraining(config)


def loss_of(model: Any, batch: Batch, device: CpuDevice) -> torch.Tensor:
    """Return the mean cross-entropy (nats) of the hidden tokens plus the next sentence's."""
    with device.autocast():
        loss: torch.Tensor = model(**inputs_of(batch, device)).loss
    return loss


def losses_of(model: Any, batch: Batch, device: CpuDevice) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both parts of `loss_of`: their numbers of labels differ between batches."""
    inputs = inputs_of(batch, device)
    labels, following = inputs.pop("labels"), inputs.pop("next_sentence_label")
    with device.autocast():
        found = model(**inputs)
        words = cross_entropy(found.prediction_logits.flatten(0, 1), labels.flatten())
        return words, cross_entropy(found.seq_relationship_logits, following)


def inputs_of(batch: Batch, device: CpuDevice) -> dict[str, torch.Tensor]:
    """Return a batch as named arguments of the model, on its device."""

    def there(array: Any) -> torch.Tensor:
        return torch.from_numpy(array).to(device.torch_device)

    # In the form that transformers adds to the scores. It converts a mask of two dimensions in a way that
    # depends on the mask's values, which XLA would have to compute in the middle of a graph.
    hidden = np.where(batch.attention_mask == 1, 0.0, np.finfo(np.float32).min).astype(np.float32)
    return {
        "input_ids": there(batch.input_ids),
        "token_type_ids": there(batch.token_type_ids),
        "attention_mask": there(hidden[:, None, None, :]),
        "labels": there(batch.labels),
        "next_sentence_label": there(batch.next_sentence_label),
    }


def make_optimizer(model: torch.nn.Module, settings: Settings) -> torch.optim.AdamW:
    """Return AdamW as in AWS's guide, without decay of biases and norms. Each step sets its learning rate."""
    plain = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
    without = {id(p) for p in plain}
    groups = [
        {
            "params": [p for p in model.parameters() if id(p) not in without],
            "weight_decay": settings.weight_decay,
        },
        {"params": plain, "weight_decay": 0.0},
    ]
    # One tensor after another, since XLA makes one graph of them anyway.
    optimizer = torch.optim.AdamW(
        groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-6, foreach=False
    )
    for parameter in model.parameters():
        # Gradients exist before the first step, so that it has the same graph as the others.
        parameter.grad = torch.zeros_like(parameter)
    return optimizer


def weights_of(model: torch.nn.Module) -> dict[str, Any]:
    """Return the model's weights as a checkpoint stores them."""
    return {name: tensor for name, tensor in model.state_dict().items() if name not in TIED}


def load_weights(model: torch.nn.Module, weights: dict[str, Any]) -> None:
    """Put weights_of() back, before the model is moved to its device.

    Raises:
        RuntimeError: they belong to another model.
    """
    found = model.load_state_dict(weights, strict=False)
    if found.unexpected_keys or not TIED.issuperset(found.missing_keys):
        raise RuntimeError(f"unknown: {found.unexpected_keys}, missing: {found.missing_keys}")
