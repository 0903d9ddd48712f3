"""Process group of a torch trainer: its timeouts, work without steps, and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from trainkit import network
from trainkit.run import heartbeat, stacks
from trainkit.run.run import Run

Value = TypeVar("Value")
START = timedelta(minutes=30)
"""Time that a rank waits for the others until the first step is done, and in a save or a validation."""
STEP = timedelta(minutes=5)
"""Time that a rank waits for the others between two steps."""
CLOSING = timedelta(minutes=2)
"""Time that a rank has to close NCCL's communicators after its work."""

_BACKGROUND: list[dist.ProcessGroup] = []


def join(run: Run, backend: str, **options: Any) -> None:
    """Join the other ranks with the timeout of a start; `options` are options of init_process_group."""
    stacks.register(run)
    if "nccl" in backend:
        network.record(run)
    dist.init_process_group(backend, timeout=START, **options)


def lengthen() -> None:
    """Give the process group that a trainer made by itself the timeout of a start; join does that itself."""
    _set_timeout(START)


def background_group() -> dist.ProcessGroup:
    """Return a gloo group for work during the steps, which keeps the timeout of a start."""
    group = dist.new_group(backend="gloo", timeout=START)
    assert isinstance(group, dist.ProcessGroup), "all ranks are in it"
    _BACKGROUND.append(group)
    return group


def shorten() -> None:
    """Lower the timeouts after the first step, which may compile and warm up, and report NCCL's network.

    Dies if STRICT_NETWORK is 1 and nodes with EFA send over TCP.
    """
    _set_timeout(STEP)
    network.report()


@contextlib.contextmanager
def patient(run: Run, work: str) -> Iterator[None]:
    """Let all ranks wait as long as at a start, for `work` that is not a step: saving, validating.

    All ranks enter it. They leave it together, since the next step has the short timeout again.
    """
    _set_timeout(START)
    with heartbeat.busy(run, work):
        yield
        if dist.is_initialized():
            dist.barrier()
    _set_timeout(STEP)


def agree(value: Value, group: dist.ProcessGroup | None = None) -> Value:
    """Return the value of the first rank on all ranks of a group; all of them call it."""
    agreed = [value]
    if dist.is_initialized():
        dist.broadcast_object_list(agreed, src=0, group=group)
    return agreed[0]


def leave() -> NoReturn:
    """End this rank with exit code 0 once all ranks have arrived here.

    gloo's threads outlive the process group, and an interpreter that ends while they run aborts ("terminate
    called without an active exception") about one time in twenty; so the process ends without destructors.
    """
    if dist.is_initialized():
        _set_timeout(START)
        dist.barrier()
        if torch.cuda.is_available():
            # NCCL's communicators are closed together. What waits there forever, as gloo's destructor may
            # (torch 2.13), costs no node more than this.
            threading.Timer(CLOSING.total_seconds(), os._exit, (0,)).start()
            dist.destroy_process_group()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _set_timeout(timeout: timedelta) -> None:
    """Set the timeout of the collectives that are called from here on, in all groups of this rank."""
    if dist.is_initialized():
        # The torch of rehearsals, and Neuron's, have it under the second name only.
        set_timeout = getattr(dist, "set_timeout", None) or distributed_c10d._set_pg_timeout
        for group, (backend, _) in list(distributed_c10d._world.pg_map.items()):
            # torchtitan's groups of one rank exchange nothing ("fake"), and torch warns about their timeout.
            if group not in _BACKGROUND and "fake" not in backend:
                set_timeout(timeout, group)
