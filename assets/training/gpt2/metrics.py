"""metrics.jsonl of a run: a JSON line a step, written by rank 0. Only the standard library."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any


class Metrics:
    """The file of one run; steps that come again after a resume are taken out of it first."""

    def __init__(self, file: Path, *, after_step: int) -> None:
        self._file = file
        kept = [line for line in read(file) if line["step"] <= after_step]
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        partial.rename(file)

    def add(self, **line: float) -> str:
        """Append one step; returns the same for people to read."""
        now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 (Python 3.10 runs this too)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "time": now.isoformat(timespec="milliseconds")}) + "\n")
        return (
            f"step {line['step']}: loss {line['loss']:.4f}, {line['tokens_per_s']:,.0f} tokens/s, "
            f"{line['step_s']:.3f} s a step, learning rate {line['learning_rate']:.2e}"
        )

    def summary(self) -> str:
        """How far the run came, in a line."""
        lines = read(self._file)
        if not lines:
            return "no step was left to do"
        first, last = lines[0], lines[-1]
        return f"step {last['step']}, first loss {first['loss']:.4f}, last loss {last['loss']:.4f}"


def read(file: Path) -> list[dict[str, Any]]:
    """All whole lines; the last may be torn if the machine went down while it was written."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]
