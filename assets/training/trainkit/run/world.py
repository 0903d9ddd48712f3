"""The check that all ranks of the job train together."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from trainkit.run.run import Run, die


def check_world(device: Any) -> None:
    """Sum the number 1 over all ranks; die unless the sum is EXPECTED_WORLD_SIZE."""
    expected = Run.from_environment().world_size
    present = 1
    if dist.is_initialized():
        ones = torch.ones(1, device=device)
        dist.all_reduce(ones)
        present = round(ones.item())
    if present != expected:
        die(
            f"the world size is {present} and EXPECTED_WORLD_SIZE is {expected}, so nodes would train alone: "
            "compare how train.sh starts the ranks with the job's nodes."
        )
