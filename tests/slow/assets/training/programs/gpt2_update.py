"""An update of gpt2 whose numbers may not be read; run in the environment of the workload."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import NoReturn

import torch
from accelerate import Accelerator
from loop import update
from model import make_model, make_optimizer
from settings import Settings, Shape

# Not __bool__, which transformers reads in each forward pass that is not compiled.
READERS = ("item", "tolist", "__float__")


def refuse(*_: object) -> NoReturn:
    """Fail, since a GPU has to finish its work before a number can be read."""
    raise AssertionError("a number was read")


def main() -> None:
    """Make one update of three micro-steps."""
    settings, shape = Settings(device="cpu"), Shape(1, 2, 16, 8, 64)
    accelerator = Accelerator(cpu=True)
    model = make_model(settings, shape, None)
    model, optimizer = accelerator.prepare(model, make_optimizer(model, settings))
    ids = torch.arange(16).reshape(2, 8)
    own = {name: getattr(torch.Tensor, name) for name in READERS}
    for name in READERS:
        setattr(torch.Tensor, name, refuse)
    loss, norm = update(accelerator, model, optimizer, [ids, ids, ids])
    for name, function in own.items():
        setattr(torch.Tensor, name, function)
    print(f"{loss.item():.3f} {norm.item() > 0}")


if __name__ == "__main__":
    main()
