"""Ranks of a small model under the sentinel, each on a node of its own; prints what the first one did.

It has what a comparison may disturb: gradients that accumulate, dropout, batch norm, and random batches.
"""

# mypy: disable-error-code="import-not-found"

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn
from trainkit.run import process_group
from trainkit.run.run import Run
from trainkit.sentinel import Sentinel


def train(run: Run, every: int, factors: Iterator[int], flipped_after: int) -> list[float]:
    """Train as one rank; return its losses, and the sums of its weights and buffers.

    The faults are a flipped bit of a weight after a step, and factors of the loss in the comparisons.
    """
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 1))
    wrapped, optimizer = nn.parallel.DistributedDataParallel(model), torch.optim.AdamW(model.parameters())
    torch.manual_seed(run.rank)
    batch, found = torch.arange(32.0).reshape(4, 8) / 32, []
    loss_of = lambda own: own(batch).square().sum() * next(factors, 1)  # noqa: E731
    sentinel = Sentinel(run, every=every, model=wrapped, loss_of=loss_of)
    for step in range(1, 11):
        loss = wrapped(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        if step % 2:
            optimizer.zero_grad()
        found.append(loss.item())
        if step == flipped_after:
            model[0].weight.detach().view(torch.int32)[0, 3] ^= 1 << 12
        if sentinel.due(step):
            sentinel.compare(step)
    return [*found, *(value.double().sum().item() for value in model.state_dict().values())]


def scene(ranks: int, faulty: str = "", every: int = 3, factors: Any = (), flipped: int = 0) -> Any:
    """Fork ranks, of which `faulty` have faults; return the losses, output and marks of the first one."""
    folder = Path(tempfile.mkdtemp())
    for rank in range(ranks):
        if not os.fork():
            os.environ["SLURMD_NODENAME"] = f"n{rank}"
            own = {"rank": rank, "world_size": ranks}
            run = Run(run_dir=folder, data_dir=folder, checkpoint_dir=folder, local_rank=0, **own)
            process_group.join(run, "gloo", init_method=f"file://{folder}/store", **own)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                found = train(
                    run, every, *((iter(factors), flipped) if str(rank) in faulty else (iter(()), 0))
                )
            marks = sorted(file.name for file in folder.glob("suspect-*"))
            if run.is_first:
                (folder / "found").write_text(json.dumps([found, said.getvalue(), marks]))
            process_group.leave()
    assert [os.wait()[1] for _ in range(ranks)] == [0] * ranks
    return json.loads((folder / "found").read_text())


scenes = {
    "off": scene(3, every=0),
    "on": scene(3),
    "flipped": scene(3, "1", flipped=4),
    "tie": scene(2, "1", flipped=4),
    "once": scene(2, "0", factors=[1, 1, 2]),
    "flaky": scene(2, "0", factors=[1, 2]),
    "unsteady": scene(2, "01", factors=count(1)),
    "alone": scene(1),
}
print(json.dumps(scenes))
