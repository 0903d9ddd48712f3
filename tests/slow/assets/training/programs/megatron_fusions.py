"""Train a tiny GPT-2 of gpt2-megatron, and print loss and norm of each step; run in its environment.

python megatron_fusions.py fused|plain: with bias, GELU and dropout as on GPUs, or as on CPUs.
"""

# mypy: disable-error-code="import-not-found"
import sys

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from model import make_model, make_optimizer, make_parallel
from rank import forward_step
from settings import Settings

STEPS, CONTEXT, VOCABULARY, ROWS = 4, 32, 256, 2


class Cuda:
    """A device that calls itself a GPU's."""

    type = "cuda"


def main() -> None:
    """Train on random tokens."""
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)
    model_parallel_cuda_manual_seed(5)
    settings = Settings(
        gpt2_layers=2,
        gpt2_heads=4,
        gpt2_width=64,
        gpt2_context=CONTEXT,
        gpt2_dropout=0.0,
        vocab_size=VOCABULARY,
        device="cpu",
        transformer_impl="local",
        learning_rate=1e-2,
        warmup_steps=1,
    )
    own, torch.nn.Module.to = torch.nn.Module.to, lambda module, *_: module
    core = make_model(settings, Cuda() if sys.argv[1] == "fused" else torch.device("cpu"))
    torch.nn.Module.to = own
    assert core.config.bias_activation_fusion == core.config.bias_dropout_fusion == (sys.argv[1] == "fused")
    parallel = make_parallel(core, settings)
    optimizer, schedule = make_optimizer(parallel, settings)
    parallel.train()
    for step in range(STEPS):
        schedule.step(increment=1)
        parallel.zero_grad_buffer()
        optimizer.zero_grad()
        ids = torch.randint(VOCABULARY, (ROWS, CONTEXT + 1), generator=torch.Generator().manual_seed(step))
        batch = {
            "tokens": ids[:, :-1],
            "labels": ids[:, 1:],
            "position_ids": torch.arange(CONTEXT).repeat(ROWS, 1),
        }
        (found,) = get_forward_backward_func()(
            forward_step_func=forward_step,
            data_iterator=iter([batch]),
            model=[parallel],
            num_microbatches=1,
            seq_length=CONTEXT,
            micro_batch_size=ROWS,
            forward_only=False,
        )
        _, norm, _ = optimizer.step()
        print(f"{float(found['loss'])} {float(norm)}")


if __name__ == "__main__":
    main()
