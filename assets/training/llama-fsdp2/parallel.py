"""The model, spread over the ranks: FSDP2, precision, recomputed activations, compilation."""

from __future__ import annotations

import os

import torch
from model import Llama, loss_of
from settings import Settings
from sizes import Shape
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from trainkit.run.run import Run


def make_mesh(run: Run, settings: Settings) -> DeviceMesh:
    """Make a mesh of all ranks, or of replicas by shards: then weights are gathered within a node only."""
    if settings.shard == "all":
        return init_device_mesh(settings.device, (run.world_size,), mesh_dim_names=("shard",))
    a_node = int(os.environ.get("NPROC_PER_NODE", "1"))
    sizes = (run.world_size // a_node, a_node)
    return init_device_mesh(settings.device, sizes, mesh_dim_names=("replicate", "shard"))


def make_model(shape: Shape, settings: Settings, mesh: DeviceMesh, device: torch.device) -> Llama:
    """Make a model of which each rank holds its part only, at no time the whole."""
    with torch.device("meta"):
        model = Llama(shape)
    # Room for checkpoints and MFU were worked out from the sizes alone.
    assert sum(p.numel() for p in model.parameters()) == shape.parameters
    every = settings.recompute_every
    # Gradients are summed in fp32. Inputs are bf16 already, but for the table of positions, which stays fp32.
    policy = MixedPrecisionPolicy()
    if settings.mixed_precision == "bf16":
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False
        )
    for number, block in enumerate(model.blocks):
        block.recompute = bool(every) and number % every == 0
        if settings.compile == "yes":
            # One graph, which all layers share.
            block.compute = torch.compile(block.forward_once, fullgraph=True)
        fully_shard(block, mesh=mesh, mp_policy=policy)
    # What is left, embeddings and head, is gathered once a step.
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=device)
    model.initialise(seed=settings.seed)
    return model


def make_optimizer(model: Llama, settings: Settings) -> torch.optim.AdamW:
    """Make AdamW, which decays matrices and no norms; each step sets its learning rate."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    # On GPUs all of it in a few kernels.
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=settings.device == "cuda")


class Update:
    """One step's arithmetic on this rank."""

    def __init__(self, model: Llama, optimizer: torch.optim.AdamW, settings: Settings) -> None:
        self._model, self._optimizer = model, optimizer
        self._replicated = settings.shard == "node"
        self.loss = torch.compile(loss_of) if settings.compile == "yes" else loss_of

    def __call__(
        self, micro_batches: list[Tensor], *, clip: float, learning_rate: float
    ) -> tuple[float, float]:
        """Update the weights; return this rank's mean loss, and the norm of all ranks' gradients.

        Gradients are summed over the shards in each micro-step, so that no rank ever holds whole ones, and
        over the replicas in the last one only.
        """
        self._model.train()
        total = torch.zeros((), device=micro_batches[0].device)
        for i, ids in enumerate(micro_batches, start=1):
            if self._replicated:
                self._model.set_requires_all_reduce(i == len(micro_batches))
            loss = self.loss(self._model(ids[:, :-1]), ids[:, 1:]) / len(micro_batches)
            loss.backward()
            total += loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), clip)
        whole_norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return float(total.item()), float(whole_norm.item())
