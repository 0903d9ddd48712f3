"""The end of a rank whose accelerator has too little memory, in one sentence with what to lower."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from trainkit.run.run import die, reason
from trainkit.run.settings import AccumulatingSettings

GIB = 2**30


@contextlib.contextmanager
def enough_memory(used: str, instead: Callable[[], str]) -> Iterator[None]:
    """Die with one sentence if the block, which trains, runs out of a GPU's memory.

    Args:
        used: the settings that decide on a micro-step's memory, such as BATCH_SIZE=12.
        instead: returns what to give instead, as the end of "give ...".
    """
    try:
        yield
    except RuntimeError as error:  # torch.OutOfMemoryError, and NCCL's and the driver's own
        if "out of memory" not in str(error):
            raise
        import torch  # noqa: PLC0415 (the block has imported it)

        peak, (_, whole) = torch.cuda.max_memory_reserved(), torch.cuda.mem_get_info()
        die(
            f"the GPU has too little memory for a step with {used}: torch took {peak / GIB:.1f} of "
            f"{whole / GIB:.1f} GiB ({reason(error, line=0)}): give {instead()}."
        )


def smaller_micro_steps(settings: AccumulatingSettings, otherwise: str) -> str:
    """Return the settings that divide the same step into more micro-steps, else `otherwise`."""
    size = settings.batch_size
    parts = next((n for n in range(2, size + 1) if size % n == 0), 1)
    if parts == 1:
        return otherwise
    count = settings.gradient_accumulation * parts
    return f"BATCH_SIZE={size // parts} GRADIENT_ACCUMULATION={count}, which make the same step"
