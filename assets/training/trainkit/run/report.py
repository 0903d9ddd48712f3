"""Report of a run: as text, or packed for trainctl report.

python -m trainkit.run.report RUN_DIR [--figures FILE]
python -m trainkit.run.report RUN_DIR --record [--points N]
python -m trainkit.run.report RUNS_DIR --find NAME

Only the standard library, and Python 3.9: the head node's python3 runs it, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from trainkit.run import run_files
from trainkit.run.run_record import pack, published, read_run

# Measures that a published figure is compared with, by their names in figures.json.
MEASURES = {
    "tokens_per_s": "tokens_per_s",
    "loss": "last_loss",
    "val_loss": "last_val_loss",
    "mfu": "mfu",
    "seq_per_s": "seq_per_s",
    "busbw_gb_per_s": "busbw_gb_per_s",
}
_NEWEST_RUNS = 20


def summarize(run_dir: Path) -> dict[str, Any]:
    """Measure a run; return nothing if it wrote no metrics.

    tokens_per_s, mfu and data_share are medians over the steps after warm-up. goodput is the part of the paid
    node time that trained. `restarts` counts the starts after the first, of this job or another.
    """
    record, _ = read_run(run_dir, None)
    summary: dict[str, Any] = record["summary"]
    if damaged := record["damaged_rows"]:
        summary["damaged_rows"] = damaged
    return summary


def render(summary: dict[str, Any], figures: list[dict[str, Any]]) -> str:
    """Return a line of measures, then a line for each published figure."""
    damaged = summary.get("damaged_rows", 0)
    parts = [f"{damaged} damaged rows skipped"] if damaged else []
    if "steps" not in summary:
        return f"report: {', '.join(['the run wrote no metrics', *parts])}"
    parts = _parts(summary) + parts
    return "\n".join([f"report: {', '.join(parts)}", *(_beside(summary, figure) for figure in figures)])


def _parts(summary: dict[str, Any]) -> list[str]:
    if "busbw_gb_per_s" in summary:
        busbw, size = summary["busbw_gb_per_s"], summary.get("message_bytes")
        parts = [f"{summary['steps']} message sizes", f"at most {busbw:g} GB/s (bus) at {size:,} bytes"]
    else:
        parts = [f"{summary['steps']} steps"]
    if "first_loss" in summary:
        last = f"{summary['last_loss']:.4f}" if "last_loss" in summary else "not a number"
        parts.append(f"loss {summary['first_loss']:.4f} -> {last}")
    if "last_val_loss" in summary:
        first, last = (
            summary.get(f"{which}_val_loss", summary["last_val_loss"]) for which in ("first", "last")
        )
        reach = f"{first:.4f} -> {last:.4f}" if first != last else f"{last:.4f}"
        parts.append(f"validation loss {reach}")
    if "tokens_per_s" in summary:
        parts.append(f"{summary['tokens_per_s']:,.0f} tokens/s (median)")
    if "mfu" in summary:
        parts.append(f"MFU {summary['mfu']:.1%}")
    if "data_share" in summary:
        parts.append(f"{summary['data_share']:.1%} of the time waiting for data")
    if "goodput" in summary:
        parts.append(f"{summary['goodput']:.1%} of the paid node time trained")
    if "memory_bytes" in summary:
        parts.append(f"{summary['memory_bytes'] / 2**30:.1f} GiB")
    return [*parts, f"world size {summary.get('world_size', '?')}", f"restarts: {summary['restarts']}"]


def _beside(summary: dict[str, Any], figure: dict[str, Any]) -> str:
    nodes = f", {figure['nodes']} nodes" if figure.get("nodes") else ""
    text = f"published: {figure['what']}, {figure['family']}{nodes}: {figure['value']:,} {figure['unit']}"
    ours = summary.get(MEASURES.get(figure["metric"], ""))
    own = "" if ours is None else f"; this run: {ours:,.4g}"
    again = "" if figure["reproduced"] else "; not reproduced here"
    return f"{text} ({figure['source']}{again}){own}"


def main(arguments: list[str] | None = None) -> int:
    """Print the report of a run; 1 if the run's folder is missing."""
    parser = argparse.ArgumentParser(prog="trainkit.run.report", description="Report the results of a run.")
    parser.add_argument("run_dir", type=Path, help="the run's folder, such as /fsx/runs/gpt2/job-17")
    parser.add_argument(
        "--figures", type=Path, help="a workload's figures.json: published figures for comparison"
    )
    parser.add_argument("--family", default=os.environ.get("FAMILY", ""), help="default: $FAMILY")
    parser.add_argument(
        "--record", action="store_true", help="the whole record in one line, for trainctl report"
    )
    parser.add_argument(
        "--points", type=int, default=300, metavar="N", help="largest number of points of a series"
    )
    parser.add_argument(
        "--find", metavar="NAME", help="runs below RUN_DIR of this job id, name or WORKLOAD/RUN"
    )
    given = parser.parse_args(arguments)
    if not given.run_dir.is_dir():
        print(f"there is no run in {given.run_dir}", file=sys.stderr)
        return 1
    if given.find is not None:
        meant, every = run_files.find(given.run_dir, given.find)
        print(json.dumps({"found": meant, "newest": every[:_NEWEST_RUNS]}))
        return 0
    if given.record:
        run_dir = given.run_dir.resolve()
        beside = Path(__file__).resolve().parents[2] / run_dir.parent.name / "figures.json"
        record, reading = read_run(run_dir, given.figures or beside)
        print(pack(record, reading.buckets, points=given.points))
        return 0
    summary = summarize(given.run_dir)
    figures = published(given.figures, given.family, given.run_dir, run_files.starts(given.run_dir)[0])
    print(render(summary, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
