"""Files of a run other than its metrics: starts, ends, settings and checkpoints.

Only the standard library, and Python 3.9: the head node's python3 runs it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STARTS, ENDS = "starts", "ends"


def lines_of(file: Path) -> list[str]:
    """Read the lines of a text file; none if it does not exist."""
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def first_line(file: Path) -> str | None:
    """Read the first line of a text file; None if there is none."""
    return next(iter(lines_of(file)), None)


def prepared(run_dir: Path) -> dict[str, Any] | None:
    """Read what prepare.py noted of the data: `described`, and `tokens` of an epoch, 0 if unknown."""
    try:
        noted = json.loads((run_dir / "data.json").read_text(encoding="utf-8"))
        return {"described": [str(each) for each in noted["described"]], "tokens": int(noted["tokens"])}
    except (OSError, ValueError, KeyError, TypeError):  # not yet, or of older scripts
        return None


def seconds(time: str) -> float:
    """Parse a time in the form of job.slurm and Metrics to seconds since 1970. Raises ValueError."""
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def iso(at: float) -> str:
    """Format seconds since 1970 as a time in UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="seconds")  # noqa: UP017


def step_options() -> list[str]:
    """Return the options of srun for the nodes of this start; none outside of job.slurm."""
    return os.environ.get("STEP_OPTIONS", "").split()


def node_count(nodes: str) -> int:
    """Count the nodes in a host list of Slurm: a-[1-3,7],b are 5."""
    count = 0
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
        each = 1
        for group in re.findall(r"\[([^\]]*)\]", host):
            bounds = [part.split("-", 1) for part in group.split(",")]
            each *= sum(int(bound[-1]) - int(bound[0]) + 1 for bound in bounds)
        count += each
    return count


def starts(run_dir: Path) -> tuple[list[dict[str, Any]], int]:
    """Read the starts, oldest first, and count the damaged lines of the files starts and ends.

    `end` (seconds since 1970) and `exit_code` are None if job.slurm was killed before it wrote them.
    """
    ends: dict[tuple[str, str], tuple[float, int]] = {}
    found: list[dict[str, Any]] = []
    damaged = 0
    for line in lines_of(run_dir / ENDS):
        try:
            job, restart, time, code, *_ = line.split()  # and who ended the ranks, which restarts.sh reads
            ends[job, restart] = seconds(time), int(code)
        except ValueError:
            damaged += 1
    for line in lines_of(run_dir / STARTS):
        try:
            found.append(_start(run_dir, line, ends))
        except ValueError:
            damaged += 1
    return found, damaged


def _start(run_dir: Path, line: str, ends: Mapping[tuple[str, str], tuple[float, int]]) -> dict[str, Any]:
    """Parse a line of the file starts. Raises ValueError if it is damaged."""
    restart, step, time, nodes, job, *more = line.split()
    # Older versions wrote neither Slurm's restart count nor how many nodes the job held, and for how long.
    older = (restart, count := node_count(nodes), 0)
    allocation, held, held_s, *_ = map(int, [*more, *older[len(more) :]])
    end, exit_code = ends.get((job, restart), (None, None))
    if not job.isdecimal() or count < 1 or max(allocation, count, held, held_s) >> 31:
        raise ValueError(f"{line} has no job id, or a number out of range")
    return {
        "restart": int(restart),
        "step": int(step),
        "time": time,
        "nodes": nodes,
        "node_count": count,
        "job": job,
        "allocation": allocation,
        "held": max(held, count),
        "held_s": max(0, held_s),
        "begin": seconds(time),
        "end": end,
        "exit_code": exit_code,
        "settings": read_settings(run_dir / f"settings-{job}-{restart}.env"),
    }


def read_settings(file: Path) -> dict[str, str]:
    """Read `NAME=value` lines, as job.slurm writes them."""
    return {name: value for line in lines_of(file) for name, is_one, value in [line.partition("=")] if is_one}


def checkpoints_of(run_dir: Path) -> Path:
    """Return the folder of a run's checkpoints."""
    return run_dir.parent.parent.parent / "checkpoints" / run_dir.parent.name / run_dir.name


def trained_with(run_dir: Path) -> dict[str, Any]:
    """Return what prepare.py noted, and the settings of the newest checkpoint by their fields' names."""
    found: dict[str, Any] = {}
    labels = sorted(checkpoints_of(run_dir).glob("step-*/checkpoint.json"))
    for file in (run_dir / "data.json", *labels[-1:]):
        with contextlib.suppress(OSError, ValueError):  # none, or a damaged one, which a start names
            noted = json.loads(file.read_text(encoding="utf-8"))
            found.update(noted if file.name == "data.json" else noted.get("settings", {}))
    return found


def saved(folder: Path) -> list[dict[str, Any]]:
    """List step, time and bytes of the complete checkpoints, oldest first.

    A checkpoint.json has the sizes of all files, perhaps one for each of 10,000 ranks.
    """
    found = []
    # The names come from trainkit.run.checkpoints, whose imports need a newer Python.
    names = [re.fullmatch(r"step-(\d{6,})", path.name) for path in folder.glob("step-*")]
    for step, name in sorted((int(name[1]), name[0]) for name in names if name):
        path = folder / name
        try:
            when, size = _labelled(path) or _measured(path)
        except FileNotFoundError:  # the run has just removed it
            continue
        found.append({"step": step, "time": iso(when), "bytes": size})
    return found


def _labelled(checkpoint: Path) -> tuple[float, int] | None:
    """Return time and bytes by checkpoint.json, which is written last; None without a whole one."""
    try:
        label = checkpoint / "checkpoint.json"
        return label.stat().st_mtime, sum(json.loads(label.read_text(encoding="utf-8"))["files"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _measured(folder: Path) -> tuple[float, int]:
    files = [Path(at, name).stat() for at, _, names in os.walk(folder) for name in names]
    return max((file.st_mtime for file in files), default=0.0), sum(file.st_size for file in files)


def profiles(run_dir: Path) -> list[dict[str, Any]]:
    """List kind, step, folder, number of files and bytes of the profiles in torchtitan's layout."""
    found = []
    for kind, pattern in (("trace", "traces/iteration_*"), ("memory", "memory_snapshot/step_*")):
        for folder in (run_dir / "profiling").glob(pattern):
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
            step = re.search(r"\d+", folder.name)
            if sizes and step:
                note = {"kind": kind, "step": int(step.group()), "folder": str(folder)}
                found.append({**note, "files": len(sizes), "bytes": sum(sizes)})
    return sorted(found, key=lambda each: (each["step"], each["kind"]))


def find(runs: Path, name: str) -> tuple[list[str], list[str]]:
    """List WORKLOAD/RUN of the runs that a job id or a name matches, and of all runs, newest first."""
    folders = sorted((path for path in runs.glob("*/*") if path.is_dir()), key=_age)
    every = [_label(path) for path in folders]
    meant = [_label(path) for path in folders if path.name in (name, f"job-{name}") or _label(path) == name]
    if not meant and name.isdecimal():
        meant = [_label(path) for path in folders if _ran(path, name)]
    return meant, every


def _age(run: Path) -> float:
    return -run.stat().st_mtime


def _label(run: Path) -> str:
    return f"{run.parent.name}/{run.name}"


def _ran(run: Path, job: str) -> bool:
    return any(line.split()[4:5] == [job] for line in lines_of(run / STARTS))
