"""Print, as JSON, the arguments that roberta gives fairseq-train, as you type them for one process.

    python fairseq_command.py DATA SAVE_DIR

Settings are environment variables, as in roberta. The arguments that only roberta's own start needs are left
out: the task that records each update, and the rendezvous of several ranks.
"""

import json
import sys
from pathlib import Path

OURS = frozenset({"device-id", "ddp-backend", "bucket-cap-mb"})


def main() -> None:
    """Print the arguments."""
    # A module of the workload, which can be imported when this file runs as a script.
    from settings import fairseq_arguments, read_settings  # noqa: PLC0415

    data, save_dir = map(Path, sys.argv[1:])
    arguments = fairseq_arguments(
        read_settings([]),
        data=data,
        save_dir=save_dir,
        restore_file=None,
        rank=0,
        local_rank=0,
        world_size=1,
    )
    print(json.dumps(single_process(arguments)))


def single_process(arguments: list[str]) -> list[str]:
    """Return the arguments without the options for several ranks, and with fairseq's own task."""
    kept: list[str] = []
    skipped = False
    for each in arguments:
        name = each.removeprefix("--")
        if each.startswith("--"):
            skipped = name in OURS or name.startswith("distributed-")
        if not skipped:
            kept.append("masked_lm" if each == "recorded_masked_lm" else each)
    return kept


if __name__ == "__main__":
    main()
