"""The run of this process, which is one of its ranks: the folders, and the rank's number."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


def die(sentence: str) -> NoReturn:
    """End this process, and so the job, with one reason on stderr and exit code 1.

    job.slurm repeats that of the first rank that ends, which torchrun's own report follows on stderr.
    """
    rank = f", rank {os.environ['RANK']}" if "RANK" in os.environ else ""
    said = f"{Path(sys.argv[0]).name or 'python'} on {socket.gethostname()}{rank}: {sentence}"
    if file := os.environ.get("REASON_FILE"):
        with contextlib.suppress(OSError), Path(file).open("x", encoding="utf-8") as note:  # stderr has it
            note.write(f"{said}\n")
    sys.exit(said)


def reason(error: BaseException, *, line: int) -> str:
    """Return a line of an error's text for a sentence, at most 160 characters; the error's type without any.

    Args:
        line: 0 for the first, -1 for the last.
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[line][:160]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Folders and place in the world of one rank."""

    run_dir: Path
    data_dir: Path
    checkpoint_dir: Path
    rank: int
    local_rank: int
    world_size: int
    """Number of ranks of the job; check_world compares it with the ranks that take part."""
    peak_tflops: float | None = None
    """Peak of one rank's accelerator, dense, in bf16 (V100: fp16); None if it is not known, or in fp32."""

    @property
    def is_first(self) -> bool:
        """True for the rank that writes the files of the run."""
        return self.rank == 0

    def say(self, text: str) -> None:
        """Print on the first rank only."""
        if self.is_first:
            print(text, flush=True)

    @classmethod
    def from_environment(cls) -> Run:
        """Read the variables that job.slurm and the launcher set; dies if one is missing."""
        return cls(
            run_dir=Path(_variable("RUN_DIR")),
            data_dir=Path(_variable("DATA_DIR")),
            checkpoint_dir=Path(_variable("CHECKPOINT_DIR")),
            rank=int(_variable("RANK")),
            local_rank=int(_variable("LOCAL_RANK")),
            world_size=int(_variable("EXPECTED_WORLD_SIZE")),
            peak_tflops=_peak_tflops(),
        )


def data_note(run: Run) -> dict[str, Any]:
    """Read $RUN_DIR/data.json, which prepare.sh writes for the ranks; dies if it is missing."""
    file = run.run_dir / "data.json"
    if not file.is_file():
        die(f"{file} is missing: prepare.sh writes it before the ranks start, so submit job.slurm.")
    noted: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return noted


def _variable(name: str) -> str:
    if not (value := os.environ.get(name)):
        die(f"{name} is not set: job.slurm and launch.sh set it, so start this with sbatch job.slurm.")
    return value


def _peak_tflops() -> float | None:
    """Divide the peak of the accelerators among the ranks: a Trainium chip has several cores."""
    peak = os.environ.get("ACCELERATOR_PEAK_TFLOPS")
    # The families' figures are for 16-bit types.
    if os.environ.get("MIXED_PRECISION") == "no":
        return None
    # A rehearsal, or DEVICE=cpu on a node with GPUs, does not train on the accelerator.
    if not peak or os.environ.get("TRAINING_REHEARSAL") == "1" or os.environ.get("DEVICE") == "cpu":
        return None
    accelerators = int(os.environ.get("ACCELERATORS_PER_NODE") or 1)
    ranks = int(os.environ.get("RANKS_PER_NODE") or accelerators)
    return float(peak) * max(1, accelerators) / max(1, ranks)
