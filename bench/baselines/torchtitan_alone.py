"""torchtitan's own Trainer, without the checkpoints and metrics of the workload titan.

    python torchtitan_alone.py SIZE SEQ_LEN BATCH STEPS DATA FOLDER cuda|cpu

Trains a Llama 3 of a size as one process, with the options of the workload: compiled and in bf16 on GPUs,
without activation checkpointing. It reads the batches of the workload's loader, documents and all, since the
attention mask leaves out what is between documents. DATA is the data.json of a run of the workload.
torchtitan prints the first step and every tenth one.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Train."""
    size, seq_len, batch, steps, note, folder, device = sys.argv[1:]
    data = json.loads(Path(note).read_text(encoding="utf-8"))
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    if device == "cpu":
        import cpu  # noqa: PLC0415 (titan's own module, by PYTHONPATH)

        cpu.install()
    import torch  # noqa: PLC0415
    from config import loader_of  # noqa: PLC0415 (titan's own)
    from settings import Settings  # noqa: PLC0415
    from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss  # noqa: PLC0415
    from torchtitan.components.optimizer import default_adamw  # noqa: PLC0415
    from torchtitan.config import CompileConfig, TrainingConfig  # noqa: PLC0415
    from torchtitan.models.llama3 import model_registry  # noqa: PLC0415
    from torchtitan.tools.logging import init_logger  # noqa: PLC0415
    from torchtitan.trainer import Trainer  # noqa: PLC0415

    model = model_registry(size, attn_backend="flex")
    vocabulary: int = model.model.vocab_size

    init_logger()
    config = Trainer.Config(
        model_spec=model,
        hf_assets_path=data["tokenizer"],
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
        activation_checkpoint=None,
        compile=CompileConfig(enable=device == "cuda"),
        dataloader=loader_of(Settings(data="machine"), data, split="train"),
    )
    config.debug.enable_structured_logging = False
    trainer = config.build()
    trainer.train()
    trainer.close()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
