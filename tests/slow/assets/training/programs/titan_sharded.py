"""State dicts of titan's models over three ranks, which divide no number of heads; in titan's environment.

python titan_sharded.py FILE: the ranks meet by a file that does not exist yet. Prints the largest share of a
model's numbers that a rank holds, and `equal` if the weights by the names of the hub are those of one rank,
and give all weights back.
"""

# mypy: disable-error-code="import-not-found"
import os
import sys
from typing import Any

import cpu  # of titan
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

cpu.install()

import corrections  # noqa: E402
from config import model_of  # noqa: E402
from settings import Settings  # noqa: E402
from torchtitan.components.checkpointer.base import ModelWrapper  # noqa: E402

MODELS = ("llama3", "qwen3", "gpt_oss")
RANKS = 3


def adapter_of(spec: Any) -> Any:
    """Return the adapter of a model, which config.build chooses."""
    is_gpt_oss = spec.name == "gpt_oss"
    return (corrections.GptOssAdapter if is_gpt_oss else spec.state_dict_adapter)(spec.model, None)


def whole(weights: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return plain tensors."""
    return {name: e.full_tensor() if hasattr(e, "full_tensor") else e for name, e in weights.items()}


def check(model: str) -> float:
    """Return the share of a model's numbers on this rank; dies unless the names and values are right."""
    spec = model_of(Settings(model=model, size="debugmodel", device="cpu"), None)
    torch.manual_seed(1)
    built = spec.model.build()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_()
    alone = {name: each.clone() for name, each in ModelWrapper(built).state_dict().items()}
    numbers = sum(each.numel() for each in alone.values())
    expected = adapter_of(spec).to_hf(alone)
    for layer in built.layers.values():
        fully_shard(layer, mesh=init_device_mesh("cpu", (RANKS,), mesh_dim_names=("fsdp",)))
    fully_shard(built, mesh=init_device_mesh("cpu", (RANKS,), mesh_dim_names=("fsdp",)))
    state, adapter = ModelWrapper(built).state_dict(), adapter_of(spec)
    held = sum((each.to_local() if hasattr(each, "to_local") else each).numel() for each in state.values())
    theirs = adapter.to_hf(state)
    found = whole(theirs)
    assert found.keys() == expected.keys(), model
    assert all(torch.equal(found[name], expected[name]) for name in expected), model
    back = whole(adapter.from_hf(theirs))
    missing = {name for name in alone if name not in back and not name.endswith("expert_bias_E")}
    assert not missing - {"lm_head.weight"}, missing
    assert all(torch.equal(back[name], alone[name]) for name in back), model
    return float(held / numbers)


def main(rank: int) -> None:
    """Check all models as one rank."""
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=RANKS)
    corrections.install()
    share = max(map(check, MODELS))
    if rank == 0:
        print(share)
        print("equal")
        sys.stdout.flush()
    dist.barrier()
    os._exit(0)  # gloo's threads may abort an interpreter that ends


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, nprocs=RANKS)
