"""Prints the options that torchtitan takes behind `--` of titan, one a line; in titan's environment."""

# mypy: disable-error-code="import-not-found"
import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

# Of the help, which is in columns on a wider screen.
os.environ |= {"COLUMNS": "100", "NPROC_PER_NODE": "1"}

import cpu  # of titan

cpu.install()

from config import build  # noqa: E402
from settings import Settings  # noqa: E402
from trainkit.run.run import Run  # noqa: E402

CHOSEN: dict[str, Any] = {
    **{"size": "debugmodel", "device": "cpu", "compile": "no", "activation_checkpointing": "selective"},
    **{"batch_size": 1, "pp": 1, "tp": 1, "cp": 1, "ep": 1, "shard": "all"},
    # A validation would read the shards.
    "eval_sequences": 0,
}
KINDS: tuple[dict[str, Any], ...] = (
    {"data": "machine"},
    {"data": "hf:a/b"},
    {"profile_steps": "1-2"},
)
DATA = {
    **{"shards": ["/a"], "end_of_text": 0},
    **{"val_splits": ["test"], "workers": 2, "tokenizer": "/a"},
}

here = Path("/nowhere")
run = Run(run_dir=here, data_dir=here, checkpoint_dir=here, rank=0, local_rank=0, world_size=1)
text = io.StringIO()
for kind in KINDS:
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        build(Settings(**CHOSEN | kind), run, DATA, ["--help"])
options = set(re.findall(r"--[a-z][\w.-]+|\b[a-z]+-[a-z]+:[a-z-]+", text.getvalue()))
print("\n".join(sorted(each for each in options if ".no-" not in each)))
