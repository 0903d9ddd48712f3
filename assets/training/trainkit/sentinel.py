"""Sentinel against silent corruption: every rank computes the same batch, and the bits are compared.

Ranks of data parallelism hold the same weights, so a forward and backward of one batch gives all of them the
same loss and gradients, unless a device computes wrongly or a rank's weights have changed.
"""

from __future__ import annotations

import hashlib
import os
import socket
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from trainkit.run import process_group
from trainkit.run.files import write_whole
from trainkit.run.run import Run
from trainkit.suspects import Answer, mark_of, suspects

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Sentinel:
    """Comparison of all ranks after the first step of a start, and after each `every`-th; 0 for none.

    Args:
        model: the model in its mode of training; wrapped for data parallelism, or not.
        loss_of: returns the loss of a model, without the wrapper, of a batch that is the same on all ranks.
            It changes no state but random numbers and the model's buffers, which are restored.
    """

    def __init__(self, run: Run, *, every: int, model: Any, loss_of: Callable[[Any], torch.Tensor]) -> None:
        while isinstance(getattr(model, "module", None), torch.nn.Module):
            model = model.module
        self._run, self._model, self._loss_of = run, model, loss_of
        self._node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        self._every, self._is_new, self._named, self._agreed_at = every, True, set[str](), "of this start"
        if every and run.world_size == 1:
            self._end("one rank has no other to be compared with")

    def due(self, step: int) -> bool:
        """Return True if a comparison follows a step."""
        return self._every > 0 and (self._is_new or step % self._every == 0)

    def compare(self, step: int) -> None:
        """Compare the ranks after a step; all of them call it.

        Computing twice at the first time shows whether equal input gives equal bits at all. The memory is
        that of a step, and of one more copy of the gradients.
        """
        with process_group.patient(self._run, "comparing the ranks"):
            first = self._checksum()
            nodes, did = suspects(answers := self._gather(first, first))
            if self._is_new or nodes:
                nodes, did = suspects(answers := self._gather(first, self._checksum()))
        is_new, self._is_new = self._is_new, False
        is_unsteady = any(one != other for _, one, other in answers)
        # A single one of several nodes is a fault of its own.
        if is_new and is_unsteady and (len(nodes) > 1 or len({node for node, _, _ in answers}) == 1):
            self._end(f"the kernels are not deterministic: two computations differ on {' '.join(nodes)}")
        elif len(nodes) > (1 if is_new else 2):  # as drain_limit.sh judges checks
            self._end(f"{len(nodes)} nodes {did}, which is taken for a difference of hardware or libraries")
        elif not nodes:
            if is_new:
                self._run.say(f"sentinel: {len(answers)} ranks agree, compared every {self._every} steps")
            self._agreed_at = f"since step {step}"
        elif self._run.is_first and not self._named.issuperset(nodes):
            self._named.update(nodes)
            reason = (
                f"step {step}: for the weights, and the loss and gradients of the same batch, "
                f"{' and '.join(nodes)} {did}; checkpoints {self._agreed_at} may be wrong. With a spare, "
                f"the next start leaves the node out. To measure it: trainctl check-nodes {','.join(nodes)}"
            )
            self._run.say(f"sentinel: {reason}")
            for node in nodes:
                write_whole(mark_of(self._run.run_dir, node), f"{reason}\n")

    def _end(self, reason: str) -> None:
        self._every = 0
        self._run.say(f"sentinel: off: {reason}")

    def _gather(self, first: str, again: str) -> list[Answer]:
        answers: list[Any] = [None] * self._run.world_size
        dist.all_gather_object(answers, (self._node, first, again))
        return answers

    def _checksum(self) -> str:
        """Return a checksum of loss, gradients and weights: a flipped bit changes a sum of integers.

        Random numbers, buffers and the choice of kernels are restored. Unlike backward(), grad() starts no
        exchange, and leaves the parameters' .grad as they are.
        """
        parameters = [each for each in self._model.parameters() if each.requires_grad]
        buffers = [(each, each.clone()) for each in self._model.buffers()]
        mode = torch.get_deterministic_debug_mode()
        devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
        with torch.random.fork_rng(devices), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kernels that have no deterministic form
            torch.manual_seed(0)
            torch.set_deterministic_debug_mode("warn")
            loss = self._loss_of(self._model)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            torch.set_deterministic_debug_mode(mode)
        for buffer, kept in buffers:
            buffer.detach().copy_(kept)
        found = [each.detach().contiguous() for each in (loss, *gradients, *parameters) if each is not None]
        sums = [each.view(_INTEGERS[each.element_size()]).sum(dtype=torch.int64) for each in found]
        return hashlib.sha256(str(torch.stack(sums).tolist()).encode()).hexdigest()
