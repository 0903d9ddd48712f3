"""The operations that titan counts for documents of some lengths; run in its own environment."""

# mypy: disable-error-code="import-not-found"
import contextlib
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import cpu  # of titan
import numpy as np
import torch

cpu.install()

from batches import ShardLoader  # noqa: E402
from config import model_of  # noqa: E402
from rows import Rows, attention_flops  # noqa: E402
from settings import Settings  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402
from trainkit.run.run import Run  # noqa: E402

SEQ_LEN, END = 64, 0


def batch(lengths: list[int]) -> Any:
    """Return what the loader gives for two sequences of documents of some lengths, end of text included."""
    loader = ShardLoader.__new__(ShardLoader)
    loader._config, loader._length = ShardLoader.Config(end_of_text=END), SEQ_LEN
    loader._is_packed = False
    row = np.concatenate([np.r_[np.ones(e - 1, np.int64), END] for e in lengths] + [np.ones(1, np.int64)])
    return loader._example(np.stack([row, row]))


def main() -> None:
    """Print the operations of a token over those of a formula, by the lengths of a sequence's documents."""
    spec = model_of(Settings(model="llama3", size="debugmodel", device="cpu"), None)
    config = Trainer.Config(model_spec=spec)
    config.training.seq_len = SEQ_LEN
    spec.model.update_from_config(config=config)
    with torch.device("meta"):
        model = spec.model.build()
    rows = Rows.__new__(Rows)
    rows.has_quantization = False
    _, rows.num_flops_per_token = spec.model.get_nparams_and_flops(model, SEQ_LEN)
    _, fixed = spec.model.get_nparams_and_flops(model, 0)
    a_token = (rows.num_flops_per_token - fixed) / SEQ_LEN
    found = {}
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(sys.stderr):
        folder = Path(name)
        run = Run(run_dir=folder, data_dir=folder, checkpoint_dir=folder, rank=0, local_rank=0, world_size=1)
        attention = attention_flops(spec.model, model, SEQ_LEN)
        settings = dataclasses.replace(Settings(), seq_len=SEQ_LEN)
        rows.begin(run, settings, 0, None, attention=attention)
        rows.data_loading_times = []
        for lengths in ([64], [16, 16, 16, 16], [1] * 64, [32, 8, 23, 1]):
            rows.start_clock()
            rows.read(batch(lengths))
            pairs = sum(each**2 for each in lengths) / sum(lengths)
            found[str(lengths[:4])] = rows._flops_per_token() / (fixed + pairs * a_token)
        rows.start_clock()
        rows.read(({}, None))
        found["none"] = rows._flops_per_token()
    found["attention"] = attention / (a_token * SEQ_LEN)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
