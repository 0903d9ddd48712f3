"""File metrics.jsonl of a run: rank 0 writes a JSON line for each step, null for numbers not finite."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainkit.run.files import write_whole

FILE = "metrics.jsonl"


class Metrics:
    """File of one run; a resume first removes the steps that it will repeat."""

    def __init__(self, file: Path, *, after_step: int) -> None:
        self._file = file
        kept = [row for row in read(file) if row["step"] <= after_step]
        write_whole(file, "".join(line_of(row) for row in kept))

    def add(
        self,
        *,
        step: int,
        loss: float,
        learning_rate: float,
        tokens: int,
        tokens_per_s: float,
        step_s: float,
        data_s: float,
        memory_bytes: int,
        world_size: int,
        mfu: float | None = None,
        seq_per_s: float | None = None,
    ) -> str:
        """Append one step; return it as a line for people.

        The loss is the mean over ranks, tokens those of the whole run, tokens_per_s that of all ranks
        together, data_s the part of step_s that this rank waited for data, memory_bytes its peak, mfu a
        share (0.4 is 40 %), seq_per_s the sequences of all ranks, for models that are compared by them.
        """
        row: dict[str, Any] = {
            "step": step,
            "loss": loss,
            "learning_rate": learning_rate,
            "tokens": tokens,
            "tokens_per_s": tokens_per_s,
            "step_s": step_s,
            "data_s": data_s,
            "memory_bytes": memory_bytes,
            "world_size": world_size,
        }
        if mfu is not None:
            row["mfu"] = mfu
        if seq_per_s is not None:
            row["seq_per_s"] = seq_per_s
        now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 (Python 3.10 runs this too)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line_of({**row, "time": now.isoformat(timespec="milliseconds")}))
        used = "" if mfu is None else f", MFU {mfu:.1%}"
        return (
            f"step {step}: loss {loss:.4f}, {tokens_per_s:,.0f} tokens/s{used}, {step_s:.3f} s a step "
            f"({data_s / step_s if step_s else 0:.0%} data), {memory_bytes / 2**30:.1f} GiB, "
            f"learning rate {learning_rate:.2e}"
        )

    def summary(self) -> str:
        """Return the last step and the losses in one line."""
        rows = read(self._file)
        if not rows:
            return "no step was left to do"
        first, last = rows[0], rows[-1]
        return f"step {last['step']}, first loss {_loss_text(first)}, last loss {_loss_text(last)}"


def line_of(row: Mapping[str, Any]) -> str:
    """Encode a row as one line of JSON, with null for NaN and infinity, which JSON lacks."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"


def _loss_text(row: Mapping[str, Any]) -> str:
    return "not a number" if row["loss"] is None else f"{row['loss']:.4f}"


def read(file: Path) -> list[dict[str, Any]]:
    """Read all complete lines; the last may be torn if the machine went down while it was written."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]
