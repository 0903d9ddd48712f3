"""Torch for CPUs that accepts "cuda" as the CPU, which Megatron's core needs to run without a GPU.

Only names of torch are replaced. Every number is computed by torch's own code for CPUs.
"""

import functools
from collections.abc import Callable
from typing import Any

FACTORIES = ("tensor", "zeros", "ones", "empty", "full", "arange", "empty_like", "zeros_like")


def mend(torch: Any) -> None:
    """Change the torch module, unless it has a GPU."""
    cuda, cpu = torch.cuda, torch.device("cpu")
    if cuda.is_available():
        return

    def on_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(*args: Any, **kwargs: Any) -> Any:
            if "cuda" in str(kwargs.get("device")):
                kwargs["device"] = cpu
            return make(*args, **kwargs)

        return made

    for name in FACTORIES:
        setattr(torch, name, on_cpu(getattr(torch, name)))

    class Generators:
        """The CPU's generator, for every device number."""

        def __getitem__(self, _: Any) -> Any:
            return torch.default_generator

    # The CPU's generator of random numbers replaces the device's.
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.manual_seed = torch.manual_seed
    cuda.default_generators = Generators()
    cuda._lazy_call = lambda call, **_: call()
    cuda.current_device = lambda: cpu
    cuda.synchronize = cuda.empty_cache = lambda *_: None
    cuda.current_stream = torch.cpu.current_stream
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    own_type = torch.Tensor.type

    def type_of(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        # The optimizer recognizes a tensor on the device by its type.
        found = own_type(tensor, *args, **kwargs)
        return found.replace("torch.", "torch.cuda.", 1) if isinstance(found, str) else found

    torch.Tensor.type = type_of
