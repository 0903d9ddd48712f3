"""File metrics.jsonl of a run: rank 0 writes a JSON line for each step, null for numbers not finite.

A validation has a line of its own after its step's, with val_loss and no loss. The seconds that a save
kept the steps waiting, save_s, are in the line behind it, of a step or a validation; they belong to neither.
local_save_s are those of a checkpoint on the nodes' own disks.

Lines are read one at a time, and damaged ones (NULs, half a line, another encoding, no row) are left out and
counted. Only the standard library, and Python 3.9: the head node's python3 runs the reading part.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainkit.run.files import whole_file, write_whole
from trainkit.run.run_files import lines_of, seconds

FILE = "metrics.jsonl"
# Number of the damaged rows that resumes have removed from the file.
DAMAGED = "damaged_rows"
# Values that are numbers or null in each row that has them; a workload may add others of any type.
NUMBERS = {
    "step",
    "loss",
    "val_loss",
    "val_s",
    "grad_norm",
    "learning_rate",
    "tokens",
    "tokens_per_s",
    "step_s",
    "data_s",
    "save_s",
    "local_save_s",
    "memory_bytes",
    "world_size",
    "mfu",
    "seq_per_s",
    "message_bytes",
    "busbw_gb_per_s",
}
# A hole in a file may be a line of gigabytes.
_LONGEST_LINE = 1 << 16


class Rows:
    """Rows of a metrics file in constant memory; `damaged` counts the damaged ones of the last reading."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.damaged = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (row for _, row in self.lines())

    def lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Yield each row with its line, which ends with a newline."""
        removed = lines_of(self._file.with_name(DAMAGED))
        self.damaged = int(removed[0]) if removed and removed[0].isdecimal() else 0
        if not self._file.is_file():
            return
        with self._file.open("rb") as stream:
            while line := stream.readline(_LONGEST_LINE):
                is_too_long = len(line) == _LONGEST_LINE
                while len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                    line = stream.readline(_LONGEST_LINE)
                row = None if is_too_long else row_of(line)
                if row is not None:
                    yield line.rstrip(b"\n") + b"\n", row
                else:
                    self.damaged += 1


def row_of(line: bytes) -> dict[str, Any] | None:
    """Parse a line; return None if it is damaged."""
    try:
        row = json.loads(line.decode("utf-8"))
        if not isinstance(row, dict) or type(row.get("step")) is not int:
            return None
        for name, value in row.items():
            # Larger whole numbers are no counts, and do not fit a float.
            is_number = type(value) is float or (type(value) is int and abs(value) < 1 << 63)
            if not is_number and value is not None and name in NUMBERS:
                return None
        if "time" in row:
            seconds(str(row["time"]))
    except (ValueError, OverflowError, RecursionError):
        return None
    return row


class Metrics:
    """File of one run; a resume first removes the steps that it will repeat, and damaged rows."""

    def __init__(self, file: Path, *, after_step: int) -> None:
        self._waited = dict[str, float]()
        rows, damaged, last = Rows(file), 0, 0
        with whole_file(file) as kept:
            for line, row in rows.lines():
                if row["step"] <= after_step:
                    # Older versions wrote NaN and Infinity, which JSON lacks.
                    kept.write(line_of(row).encode() if b"NaN" in line or b"Infinity" in line else line)
                    damaged, last = rows.damaged, row["step"]
        if last < after_step:
            damaged = rows.damaged
        # Damaged rows after these are of steps that are repeated.
        if damaged:
            write_whole(file.with_name(DAMAGED), f"{damaged}\n")
        if rows.damaged:
            print(f"{file}: {rows.damaged} damaged rows skipped")
        # Ranks of an older start that are left on a node write into the file that this one has replaced.
        self._rows = file.open("a", encoding="utf-8")

    def add(
        self,
        *,
        mfu: float | None = None,
        seq_per_s: float | None = None,
        grad_norm: float | None = None,
        **row: float,
    ) -> str:
        """Append one step; return it as a line for people.

        `row` has the step and its loss (the mean over ranks), learning_rate, tokens (of the whole run),
        tokens_per_s (of all ranks together), step_s, data_s (the part of step_s that this rank waited for
        data), memory_bytes (its peak) and world_size; `mfu` is a share (0.4 is 40 %), `seq_per_s` the
        sequences of all ranks, for models that are compared by them, `grad_norm` the norm of the exchanged
        gradients before they are clipped.
        """
        more = {"grad_norm": grad_norm, "mfu": mfu, "seq_per_s": seq_per_s}
        self._write(row | {name: value for name, value in more.items() if value is not None})
        norm = "" if grad_norm is None else f", gradient norm {grad_norm:.3g}"
        used = "" if mfu is None else f", MFU {mfu:.1%}"
        waited = row["data_s"] / row["step_s"] if row["step_s"] else 0
        return (
            f"step {row['step']}: loss {row['loss']:.4f}{norm}, {row['tokens_per_s']:,.0f} tokens/s{used}, "
            f"{row['step_s']:.3f} s a step ({waited:.0%} data), {row['memory_bytes'] / 2**30:.1f} GiB, "
            f"learning rate {row['learning_rate']:.2e}"
        )

    def add_validation(self, *, step: int, loss: float, seconds: float) -> str:
        """Append the validation after a step; return it as a line for people.

        The loss is the mean over the validation batches of all ranks, with the unit of the training's loss.
        `seconds` belong to no step.
        """
        self._write({"step": step, "val_loss": loss, "val_s": seconds})
        return f"step {step}: validation loss {loss:.4f} ({seconds:.1f} s)"

    def saved(self, seconds: float, name: str = "save_s") -> None:
        """Note the seconds for which a save has just kept the steps waiting; the next row has them."""
        self._waited[name] = self._waited.get(name, 0.0) + seconds

    def _write(self, row: dict[str, Any]) -> None:
        row |= self._waited
        self._waited.clear()
        now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 (Python 3.9 and 3.10 have no UTC)
        self._rows.write(line_of({**row, "time": now.isoformat(timespec="milliseconds")}))
        self._rows.flush()


def summary_of(file: Path) -> str:
    """Return the last step and the losses of a metrics file in one line."""
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for row in Rows(file):
        if not is_validation(row):
            first, last = first or row, row
    if not last:
        return "no step was left to do"
    return f"step {last['step']}, first loss {_loss_text(first)}, last loss {_loss_text(last)}"


def is_validation(row: Mapping[str, Any]) -> bool:
    """Return True if a row is of a validation, and not of a step."""
    return "val_loss" in row


def last_row(file: Path, *, of_step: bool = False) -> dict[str, Any]:
    """Read the last undamaged row among the newest lines of a metrics file; empty if there is none.

    Args:
        of_step: True to leave out validations.
    """
    if not file.is_file():
        return {}
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _LONGEST_LINE))
        rows = (row_of(line) for line in reversed(stream.read().splitlines()))
        return next((row for row in rows if row is not None and not (of_step and is_validation(row))), {})


def line_of(row: Mapping[str, Any]) -> str:
    """Encode a row as one line of JSON, with null for NaN and infinity, which JSON lacks."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"


def _loss_text(row: Mapping[str, Any]) -> str:
    return "not a number" if row.get("loss") is None else f"{row['loss']:.4f}"
