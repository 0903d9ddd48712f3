"""The compiled graph of gpt2 in bf16, and transformers' own model; run in the environment of the workload."""

# mypy: disable-error-code="import-not-found"

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from loop import update
from model import make_model, make_optimizer
from safetensors.torch import save_model
from settings import Settings, Shape
from transformers import GPT2LMHeadModel

SHAPE = Shape(layers=2, heads=2, width=32, context=64, vocab_size=256)
IDS = torch.randint(SHAPE.vocab_size, (2, SHAPE.context), generator=torch.Generator().manual_seed(1))
MASKED = 3  # place of scaled_dot_product_attention's mask


def compiled(weights: Path | None, *, to: Path) -> dict[str, Any]:
    """Make an update as train() does, with a compiler that keeps the graphs.

    Args:
        weights: folder of the weights to begin with; None for random ones.
        to: folder for the first weights and the config, as checkpoints have them.
    """
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    settings = Settings(device="cpu")
    model = make_model(settings, SHAPE, weights)
    model.config.save_pretrained(to)
    save_model(model, str(to / "model.safetensors"), metadata={"format": "pt"})
    model.compile(backend=keep)
    found = updated(model, make_optimizer(model, settings))
    nodes = [node for graph in graphs for node in graph.graph.nodes]
    outputs = [each for node in nodes if node.op == "output" for each in node.args[0]]
    attention = [node for node in nodes if "scaled_dot_product" in str(node.target)]
    return found | {
        "graphs": len(graphs),
        "attention": len(attention),
        "causal": sum(node.kwargs.get("is_causal") is True for node in attention),
        "masks": sum(len(n.args) > MASKED or n.kwargs.get("attn_mask") is not None for n in attention),
        "outputs": [list(each.meta["example_value"].shape) for each in outputs],
    }


def plain(weights: Path) -> dict[str, Any]:
    """Make the update of transformers' own model with the weights of a folder, not compiled."""

    class Plain(GPT2LMHeadModel):  # type: ignore[misc]
        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            logits = super().forward(input_ids=input_ids).logits
            following = torch.nn.functional.pad(input_ids[:, 1:], (0, 1), value=-100)
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())

    model = Plain.from_pretrained(weights)
    return updated(model, make_optimizer(model, Settings(device="cpu")))


def updated(model: Any, optimizer: Any) -> dict[str, Any]:
    """Make one update in bf16."""
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model, optimizer = accelerator.prepare(model, optimizer)
    loss, norm = update(accelerator, model, optimizer, [IDS])
    return {"loss": loss.item(), "norm": norm.item()}


def main() -> None:
    """Print a start from random weights, one from these weights, and transformers' own."""
    with tempfile.TemporaryDirectory() as name:
        first, second = Path(name) / "first", Path(name) / "second"
        for folder in (first, second):
            folder.mkdir()
        found = {"scratch": compiled(None, to=first), "weights": compiled(first, to=second)}
        print(json.dumps({**found, "plain": plain(second)}))


if __name__ == "__main__":
    main()
