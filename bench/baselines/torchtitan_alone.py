"""torchtitan's own Trainer, without the checkpoints, metrics and text of the workload titan.

    python torchtitan_alone.py SIZE SEQ_LEN BATCH STEPS TOKENIZER_FOLDER FOLDER cuda|cpu

Trains a Llama 3 of a size on random tokens as one process, with the options of the workload: compiled and in
bf16 on GPUs, without activation checkpointing. torchtitan prints the first step and every tenth one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


def main() -> None:
    """Train on random tokens."""
    size, seq_len, batch, steps, tokenizer, folder, device = sys.argv[1:]
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    if device == "cpu":
        import cpu  # noqa: PLC0415 (titan's own module, by PYTHONPATH)

        cpu.install()
    import torch  # noqa: PLC0415
    from torch.distributed import distributed_c10d  # noqa: PLC0415
    from torchtitan.components.dataloader import BaseDataLoader  # noqa: PLC0415
    from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss  # noqa: PLC0415
    from torchtitan.components.optimizer import default_adamw  # noqa: PLC0415
    from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig  # noqa: PLC0415
    from torchtitan.models.llama3 import model_registry  # noqa: PLC0415
    from torchtitan.tools.logging import init_logger  # noqa: PLC0415
    from torchtitan.trainer import Trainer  # noqa: PLC0415

    model = model_registry(size, attn_backend="flex")
    vocabulary: int = model.model.vocab_size

    class Random(BaseDataLoader):
        """The same batch of random tokens in each step, which costs no time."""

        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            """No option of its own."""

        def __init__(self, config: Config, *, seq_len: int, local_batch_size: int, **_: Any) -> None:  # noqa: ARG002
            self._tokens = torch.randint(vocabulary, (local_batch_size, seq_len + 1))
            self._positions = torch.arange(seq_len).repeat(local_batch_size, 1)

        def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
            while True:
                given = {"input": self._tokens[:, :-1], "positions": self._positions}
                yield given, self._tokens[:, 1:].contiguous()

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

    init_logger()
    if not hasattr(torch.distributed, "set_timeout"):  # torch 2.13 has it under this name only
        torch.distributed.set_timeout = distributed_c10d._set_pg_timeout
    config = Trainer.Config(
        model_spec=model,
        hf_assets_path=tokenizer,
        dump_folder=folder,
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=vocabulary)),
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(
            local_batch_size=int(batch),
            seq_len=int(seq_len),
            steps=int(steps),
            mixed_precision_param="bfloat16" if device == "cuda" else "float32",
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(spmd_backend="partial_dtensor"),
        activation_checkpoint=None,
        compile=CompileConfig(enable=device == "cuda"),
        dataloader=Random.Config(),
    )
    config.debug.enable_structured_logging = False
    trainer = config.build()
    trainer.train()
    trainer.close()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
