"""Record of a run for trainctl report, in one line that fits the output of Systems Manager.

Rows are read once, in constant memory. Only the standard library, and Python 3.9: the head node's python3
runs it.
"""

from __future__ import annotations

import base64
import bisect
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainkit import nccl
from trainkit.goodput import Stretch, split
from trainkit.run import metrics, run_files
from trainkit.run.buckets import Bucket, Buckets, Median

# Systems Manager keeps 24,000 characters of the output of a command.
MOST_CHARACTERS = 23_500
LEAST_POINTS = 20
# The record lists the newest starts and checkpoints; sums include all.
_MOST_LISTED = 200
_MOST_OF_A_VALUE = 300
# Rates exclude the first steps, which warm up caches and threads.
WARM_UP_ROWS = 3
SERIES = (
    "loss",
    "val_loss",
    "grad_norm",
    "tokens_per_s",
    "seq_per_s",
    "mfu",
    "data_share",
    "memory_bytes",
    "learning_rate",
    "busbw_gb_per_s",
)
AXES = ("step", "seconds", "tokens", "message_bytes")
MEDIANS = ("tokens_per_s", "mfu", "data_share", "seq_per_s")

Row = Mapping[str, Any]


class Reading:
    """Values gathered in one pass over the rows of a run."""

    def __init__(self, starts: Sequence[Mapping[str, Any]]) -> None:
        self.begin = starts[0]["begin"] if starts else None
        self.rows = 0
        self.first: Row = {}
        self.last: Row = {}
        self.validations: list[Row] = []
        """The first and the newest validation."""
        self.buckets = Buckets()
        self.highest: dict[str, tuple[float, Row]] = {}
        self.medians = {name: Median() for name in MEDIANS}
        self.wrong: dict[str, dict[str, Any]] = {}
        """Count the values that are not finite, and name the step of the first, by series."""
        self.stretches = [Stretch() for _ in starts]
        self._begins = [start["begin"] for start in starts]

    def add(self, row: Row) -> None:
        """Add the next row of the run."""
        values = values_of(row)
        names = ("step_s", "val_s", "save_s", "local_save_s")
        seconds = {name: max(0.0, _finite(row.get(name)) or 0.0) for name in names}
        at = run_files.seconds(str(row["time"])) if "time" in row else None
        if at is not None and (start := bisect.bisect_right(self._begins, at)):
            saves = {name: seconds[name] for name in names[2:]}
            self.stretches[start - 1].add(at, spent_s=sum(seconds.values()), **saves)
        if metrics.is_validation(row):
            # A validation belongs to the previous step, and has its place on the axes.
            self.validations = [*self.validations[:1], row]
            self.buckets.add_to_last(values)
        else:
            self.rows += 1
            self.first, self.last = self.first or row, row
            self.buckets.add(self._place(row, at), values)
        for name, value in values.items():
            if not math.isfinite(value):
                wrong = self.wrong.setdefault(name, {"count": 0, "first_step": row["step"]})
                wrong["count"] += 1
            elif name not in self.highest or value > self.highest[name][0]:
                self.highest[name] = value, row
            if name in self.medians and self.rows > WARM_UP_ROWS:
                self.medians[name].add(value)

    def _place(self, row: Row, at: float | None) -> dict[str, float]:
        place = {name: row[name] for name in AXES if row.get(name) is not None}
        if at is not None:
            self.begin = at if self.begin is None else self.begin
            place["seconds"] = round(at - self.begin, 1)
        return place


def values_of(row: Row) -> dict[str, float]:
    """Return a row's values by series, null as NaN; data_share is the part of a step that waited for data."""
    numbers = {name: math.nan if row[name] is None else row[name] for name in SERIES if name in row}
    values = {name: float(value) for name, value in numbers.items() if isinstance(value, (int, float))}
    if row.get("step_s") and row.get("data_s") is not None:
        values["data_share"] = row["data_s"] / row["step_s"]
    return values


def read_run(run_dir: Path, figures: Path | None) -> tuple[dict[str, Any], Reading]:
    """Return the record of a run without its series, and the reading that has them."""
    starts, damaged = run_files.starts(run_dir)
    reading = Reading(starts)
    rows = metrics.Rows(run_dir / metrics.FILE)
    for row in rows:
        reading.add(row)
    damaged += rows.damaged
    goodput = split(starts, reading.stretches)
    share = goodput["node_s"]["training"] / (sum(goodput["node_s"].values()) or 1.0) if goodput else None
    settings = starts[-1]["settings"] if starts else {}
    found = run_files.saved(run_files.checkpoints_of(run_dir))
    record = {
        "version": 1,
        "workload": run_dir.parent.name,
        "run": run_dir.name,
        "rows": reading.rows,
        "begin": None if reading.begin is None else run_files.iso(reading.begin),
        "last_time": reading.last.get("time"),
        "starts": [_told(start) for start in starts][-_MOST_LISTED:],
        "start_count": len(starts),
        "use": _use(starts),
        "goodput": goodput,
        "checkpoints": found[-_MOST_LISTED:],
        "checkpoint_count": len(found),
        "profiles": run_files.profiles(run_dir)[-_MOST_LISTED:],
        "outcome": run_files.first_line(run_dir / "outcome"),
        "failed": run_files.first_line(run_dir / "failed"),
        "exit_code": starts[-1]["exit_code"] if starts else None,
        "settings": {name: value[:_MOST_OF_A_VALUE] for name, value in settings.items()},
        "summary": summary_of(reading, start_count=len(starts), goodput=share),
        "damaged_rows": damaged,
        "network": nccl.noted(run_dir),
        "data": run_files.prepared(run_dir),
        "not_finite": reading.wrong,
        "figures": published(figures, settings.get("FAMILY"), run_dir, starts),
    }
    return record, reading


def summary_of(reading: Reading, *, start_count: int, goodput: float | None) -> dict[str, Any]:
    """Measure a run, with medians after the first rows as rates; return nothing without metrics."""
    if not reading.rows:
        return {}
    first, last = reading.first, reading.last
    found = {"steps": last["step"], "tokens": last.get("tokens"), "world_size": last.get("world_size")}
    if "loss" in first:
        found |= {"first_loss": _finite(first["loss"]), "last_loss": _finite(last.get("loss"))}
    if reading.validations:
        first_val, *_, last_val = [*reading.validations, reading.validations[-1]]
        found |= {
            "first_val_loss": _finite(first_val["val_loss"]),
            "last_val_loss": _finite(last_val["val_loss"]),
        }
    found |= {name: median.value() for name, median in reading.medians.items()}
    if "memory_bytes" in reading.highest:
        found["memory_bytes"] = int(reading.highest["memory_bytes"][0])
    if "busbw_gb_per_s" in reading.highest:
        busbw, row = reading.highest["busbw_gb_per_s"]
        found |= {"busbw_gb_per_s": busbw, "message_bytes": row.get("message_bytes")}
    found |= {"restarts": max(0, start_count - 1), "goodput": goodput}
    return {name: value for name, value in found.items() if value is not None}


def published(
    figures: Path | None, family: str | None, run_dir: Path, starts: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Read a family's published figures from a figures.json, if any, that compare with the run's settings.

    Their number of nodes is the run's, except of a loss, which does not depend on it.
    """
    if figures is None or not figures.is_file():
        return []
    nodes = {None, starts[-1]["node_count"]} if starts else {None}
    own = run_files.trained_with(run_dir).items()
    found: list[dict[str, Any]] = json.loads(figures.read_text(encoding="utf-8"))
    return [
        figure
        for figure in found
        if figure["family"] == family
        and (figure.get("nodes") in nodes or "loss" in figure["metric"])
        and figure.get("settings", {}).items() <= own
    ]


def pack(record: Mapping[str, Any], buckets: Buckets, *, points: int) -> str:
    """Return the record as one line, with fewer points than asked for if it would be too long.

    A bucket has two points, its minimum and maximum. Raises ValueError if even a few are too long.
    """
    while True:
        series = _series(buckets.at_most(max(1, points // 2)))
        content = json.dumps({**record, **series}, separators=(",", ":"), allow_nan=False)
        line = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()
        if len(line) <= MOST_CHARACTERS:
            return line
        if points <= LEAST_POINTS:
            raise ValueError(f"the record has {len(line)} characters, more than {MOST_CHARACTERS}")
        points = max(LEAST_POINTS, points * 4 // 5)


def _series(buckets: Sequence[Bucket]) -> dict[str, Any]:
    spans = {
        name: [bucket.spans.get(name) for bucket in buckets]
        for name in SERIES
        if any(name in bucket.spans for bucket in buckets)
    }
    single = all(bucket.rows == 1 for bucket in buckets)
    return {
        "axes": {
            name: [bucket.at.get(name) for bucket in buckets]
            for name in AXES
            if any(name in bucket.at for bucket in buckets)
        },
        "series": {
            name: {
                "mean": [_short(span.mean) if span else None for span in values],
                "low": [] if single else [_short(span.low) if span else None for span in values],
                "high": [] if single else [_short(span.high) if span else None for span in values],
            }
            for name, values in spans.items()
        },
    }


def _short(value: float) -> float | int:
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


def _finite(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def _told(start: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        name: start[name] for name in ("restart", "step", "time", "nodes", "node_count", "job", "seconds")
    }
    return {**told, "instance_type": start["settings"].get("INSTANCE_TYPE")}


def _use(starts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum node-seconds by instance type and capacity type."""
    found: dict[tuple[str | None, str | None, bool], float] = {}
    for start in starts:
        settings = start["settings"]
        rehearsed = settings.get("TRAINING_REHEARSAL") == "1"
        kind = settings.get("INSTANCE_TYPE"), settings.get("CAPACITY"), rehearsed
        found[kind] = found.get(kind, 0.0) + start["paid_s"]
    return [
        {"instance_type": type_, "capacity": capacity, "rehearsal": rehearsed, "node_s": round(node_s, 1)}
        for (type_, capacity, rehearsed), node_s in found.items()
    ]
