"""The differences between devices: a CPU, a NeuronCore through PyTorch/XLA, and XLA on a CPU.

Ranks communicate in two ways: gradients go from device to device, everything else (losses, requests to stop,
barriers) from host to host by gloo. XLA would need a compiled graph for each of these exchanges, and a trial
run's graphs give no results.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from trainkit.run import heartbeat, process_group, stacks
from trainkit.run.run import Run, die
from trainkit.run.world import check_world

# Ranks wait while one of them compiles a graph; by default gloo gives up after half an hour.
COMPILATION = datetime.timedelta(hours=2)


class CpuDevice:
    """A CPU with plain torch and gloo; the base of the other devices."""

    kind = "cpu"
    torch_device = torch.device("cpu")
    extracting = False
    """True in a trial run for the compiler, which computes nothing."""
    compiling_steps = 0
    """Number of first steps that compile graphs; without a filled cache each takes minutes."""

    def __init__(self, run: Run, precision: str) -> None:
        self._run, self._precision = run, precision
        self._hosts = self._join()

    def _join(self) -> Any:
        """Join the world; return the group in which hosts communicate."""
        process_group.join(self._run, "gloo")
        return dist.group.WORLD

    def check(self) -> None:
        """Die unless all ranks of the job train together."""
        check_world(self.torch_device)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context of the forward pass: bf16 where that is precise enough. Weights remain fp32."""
        if self._precision != "bf16":
            return contextlib.nullcontext()
        found: contextlib.AbstractContextManager[Any] = torch.autocast(
            self.torch_device.type, dtype=torch.bfloat16
        )
        return found

    def place(self, model: Any) -> None:
        """Move a model to the device."""
        model.to(self.torch_device)
        # A copy to another device splits the model's shared matrix into two.
        model.tie_weights()

    def seed(self, number: int) -> None:
        """Seed the random numbers that dropout draws from here on."""
        torch.manual_seed(number)

    def sync(self) -> None:
        """Compute pending operations; a CPU has none."""

    def average_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Average gradients over ranks in one exchange; the sum of two does not depend on their order."""
        gradients = [
            p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self._run.world_size
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def mean(self, *values: float) -> list[float]:
        """Return the mean over ranks of each value, exchanged between hosts."""
        own = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(own, group=self._hosts)
        return [value / self._run.world_size for value in own.tolist()]

    def agree(self, number: int) -> int:
        """Return the number of the first rank on all ranks, exchanged between hosts."""
        return process_group.agree(number, self._hosts)

    def wait_for_everyone(self) -> None:
        """Wait until all ranks arrive."""
        dist.barrier(group=self._hosts)

    def patient(self, work: str) -> contextlib.AbstractContextManager[None]:
        """Let all ranks wait longer, for `work` that is not a step."""
        return process_group.patient(self._run, work)

    def compiling(self, step: int) -> contextlib.AbstractContextManager[None]:
        """Let the hang detection wait during the first steps of a start, which compile graphs."""
        compiles = step <= self.compiling_steps
        return heartbeat.busy(self._run, "compiling") if compiles else contextlib.nullcontext()

    def leave(self) -> None:
        """End this rank when all ranks have arrived here."""
        process_group.leave()


class XlaDevice(CpuDevice):
    """XLA on this machine's CPU, in one process: the code path of Trainium without one."""

    kind = "xla-cpu"
    compiling_steps = 2

    def __init__(self, run: Run, precision: str) -> None:
        os.environ["PJRT_DEVICE"] = "CPU"
        self._load()
        super().__init__(run, precision)

    def _load(self) -> None:
        # Imported late and only where it exists, since it reads the environment at its import.
        import torch_xla  # noqa: PLC0415
        from torch_xla import runtime  # noqa: PLC0415
        from torch_xla.core import xla_model  # noqa: PLC0415

        self._xla, self._runtime, self._model = torch_xla, runtime, xla_model
        self.torch_device = torch_xla.device()

    def check(self) -> None:
        """Compare the world with XLA's own count and with a sum over hosts."""
        found = self._runtime.world_size()
        if found != self._run.world_size:
            die(
                f"XLA's world size is {found} and EXPECTED_WORLD_SIZE is {self._run.world_size}, so ranks "
                "would train alone: each rank must have a NeuronCore of its own (NPROC_PER_NODE)."
            )
        (share,) = self.mean(1.0)
        if share != 1.0:
            die(
                f"the world size is {round(share * self._run.world_size)} and EXPECTED_WORLD_SIZE is "
                f"{self._run.world_size}, so nodes would train alone."
            )

    def seed(self, number: int) -> None:
        """Seed the device. The seed is an input of the graph, so the graph does not change with it."""
        self._xla.manual_seed(number)

    def sync(self) -> None:
        """Compile the graph recorded so far if it is new, and start it."""
        self._xla.sync()

    def average_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Average gradients over ranks in the graph, in parts of ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB."""
        self._model.reduce_gradients(optimizer)


class NeuronDevice(XlaDevice):
    """One NeuronCore; gradients go over NeuronLink and EFA."""

    kind = "neuron"

    def __init__(self, run: Run, precision: str) -> None:
        # Set by neuron_parallel_compile.
        self.extracting = bool(os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY"))
        CpuDevice.__init__(self, run, precision)

    def _join(self) -> Any:
        from torch_xla.distributed import xla_backend  # noqa: F401, PLC0415 (makes the backend known)

        stacks.register(self._run)
        dist.init_process_group("xla")
        self._load()
        return dist.new_group(backend="gloo", timeout=COMPILATION)

    def check(self) -> None:
        """Compare the world with a sum over NeuronCores, too."""
        super().check()
        if self.extracting:
            # Adds the same graph to the cache; a trial run has no results.
            dist.all_reduce(ones := torch.ones(1, device=self.torch_device))
            ones.item()
        else:
            check_world(self.torch_device)

    def patient(self, work: str) -> contextlib.AbstractContextManager[None]:
        """Let only the heartbeat wait, since a barrier between devices would need a compiled graph."""
        return heartbeat.busy(self._run, work)

    def leave(self) -> None:
        """Close XLA's client by Python's exit functions, and end without gloo's destructors."""
        self.wait_for_everyone()
        dist.destroy_process_group()
        atexit._run_exitfuncs()
        process_group.leave()


DEVICES: Mapping[str, type[CpuDevice]] = {each.kind: each for each in (CpuDevice, XlaDevice, NeuronDevice)}


def to_host(value: Any) -> Any:
    """Return the same tree of dicts and lists with its tensors on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: to_host(each) for key, each in value.items()}
    return [to_host(each) for each in value] if isinstance(value, list) else value
