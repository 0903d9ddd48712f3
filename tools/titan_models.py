"""Generator of assets/training/titan/models.json: sizes of torchtitan's models, for estimates without torch.

Runs in titan's own environment, since it reads torchtitan's registry:
    /fsx/venvs/titan/bin/python -m tools.titan_models [--check]
"""

import datetime
import importlib
import importlib.metadata
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.json_text import json_text

FILE = Path(__file__).parents[1] / "assets/training/titan/models.json"
TABLES = {
    "deepseek_v3": "deepseekv3_configs",
    "gpt_oss": "gptoss_configs",
    "llama3": "llama3_configs",
    "qwen3": "qwen3_configs",
}


def facts_of(config: Any) -> dict[str, int]:
    """Return the numbers of a model: from torchtitan's own counts where it counts."""
    torch = importlib.import_module("torch")
    with torch.device("meta"):
        model = config.build()
    parameters, at_zero = config.get_nparams_and_flops(model, 0)
    _, at_thousand = config.get_nparams_and_flops(model, 1000)
    attention = config.layers[0].attention
    return {
        "parameters": parameters,
        "layers": len(config.layers),
        "width": config.dim,
        "heads": attention.n_heads,
        "kv_heads": getattr(attention, "n_kv_heads", None) or attention.n_heads,
        "vocabulary": config.vocab_size,
        "positions": config.max_seq_len,
        **experts_of(config.layers),
        "flops_per_token": at_zero,
        "flops_per_token_and_position": (at_thousand - at_zero) // 1000,
        **({"tied": True} if config.enable_weight_tying else {}),
    }


def experts_of(layers: Iterable[Any]) -> dict[str, int]:
    """Return the numbers of the first layer that has routed experts; zeros for a dense model."""
    moe = next((found for layer in layers if (found := getattr(layer, "moe", None))), None)
    return {
        "experts": moe.num_experts if moe else 0,
        "experts_of_token": moe.router.top_k if moe else 0,
        "expert_width": moe.routed_experts.inner_experts.hidden_dim if moe else 0,
    }


def generate() -> dict[str, Any]:
    """Return the facts of every size, by model and size."""
    found: dict[str, Any] = {}
    for name, table in TABLES.items():
        package = importlib.import_module(f"torchtitan.models.{name}")
        found[name] = {
            size: facts_of(package.model_registry(size, attn_backend="flex").model)
            for size in getattr(package, table)
        }
    return found


def main() -> None:
    """Write the file, or compare with it; exit with 1 and the differing models if it is out of date."""
    models = generate()
    if "--check" in sys.argv:
        written = json.loads(FILE.read_text(encoding="utf-8"))["models"]
        differing = [name for name in models if models[name] != written.get(name)]
        if differing:
            sys.exit(f"{FILE} differs from torchtitan in {', '.join(differing)}: run this without --check.")
        return
    version = importlib.metadata.version("torchtitan")
    head = {
        "source": f"torchtitan {version}, by tools/titan_models.py",
        "date": f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}",
    }
    FILE.write_text(json_text(head | {"models": models}, levels=3), encoding="utf-8")


if __name__ == "__main__":
    main()
