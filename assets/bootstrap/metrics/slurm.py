"""Slurm's nodes and jobs, by one call of sinfo, squeue or sacct.

    python3 -I slurm.py PROGRAM [OPTION ...] [-- FILE OFFSET COUNT]

Prints a line with the base64 of gzip of JSON: {"fields": names, "rows": [values, ...], "is_cut": bool}. With
FILE its size follows, or - without one, and then COUNT bytes from OFFSET. The job comes first, so that an
ended job's output is complete.

Users choose the names of jobs, which may contain any character. So what separates two fields is random in
each call. trainctl sends this file to the head node, whose bundle may be older. Python 3.9 and later.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# Systems Manager keeps 24,000 characters of an answer, which a cluster of 1,250 nodes fills without gzip.
_MOST = 23_000
_LIMIT_S = 20.0
_NOTHING = frozenset({"", "(null)", "None", "none", "N/A", "Unknown"})
# slurmctld gives a job without a limit a year when it starts (YEAR_MINUTES in its source).
_YEAR = "365-00:00:00"
# Fields of sinfo, sacct and squeue, each with our name before it.
_SINFO = (
    "partition=Partition availability=Available word=StateLong number=Nodes name=NodeList since=TimeStamp "
    "reason=Reason"
)
_SACCT = (
    "id=JobID partition=Partition user=User state=State reason=Reason nodes=NNodes elapsed=Elapsed "
    "time_limit=Timelimit name=JobName"
)
_SQUEUE = (
    "id=JobArrayID partition=Partition user=UserName state=State reason=Reason nodes=NumNodes "
    "elapsed=TimeUsed time_limit=TimeLimit name=Name command=Command dependency=Dependency job_id=JobID "
    "uid=UserID account=Account submitted=SubmitTime started=StartTime status=exit_code restarts=RestartCnt "
    "is_batch=BatchFlag output=STDOUT"
)

# sinfo's words, and the signs that follow a word (sinfo(1), NODE STATE CODES).
_OFF = {"~", "powered_down"}
_STARTING = {"#", "powering_up"}
_STOPPING = {"%", "!", "powering_down", "power_down"}
_WORKING = {"allocated", "mixed", "completing"}
_KNOWN = _OFF | _STARTING | _STOPPING | _WORKING | {"idle", "planned", "reserved"}


class Node(NamedTuple):
    """A node in one of its partitions; without --Node all nodes that are equal."""

    partition: str
    is_default: bool
    availability: str
    word: str
    """sinfo's state, such as idle~."""
    state: str
    """Group on the dashboard, by `state_of`."""
    is_out: bool
    """True if it takes no job."""
    number: int
    name: str
    """Host list of several nodes."""
    out_since: float
    """Time of the reason, seconds since 1970; 0 without one."""
    out_at: str
    """The same in the node's time zone; empty without one."""
    reason: str
    address: str
    """Only with --Node."""


class Job(NamedTuple):
    """A job; what the program does not tell is empty or 0."""

    id: str
    """With the task of an array, 12_3, or the part of a heterogeneous job, 12+1."""
    workload: str
    """Workload that job.slurm runs; for a job of another script, the job's name."""
    user: str
    partition: str
    state: str
    reason: str
    dependency: str
    nodes: int
    elapsed: str
    time_limit: str
    name: str
    job_id: str
    """Its number alone."""
    uid: int
    account: str
    submitted: float
    started: float
    """Seconds since 1970; for a pending job the expected start."""
    exit_code: int
    signal: int
    restarts: int
    output: str
    """Path of the output; empty for a job without one."""


def state_of(word: str) -> str:
    """Group one of sinfo's words: allocated, idle, powering_up, powering_down, powered_down or down.

    `down` includes every node that takes no job: down, drained or draining, failing, in maintenance, not
    responding (`*`), and any unknown word.
    """
    base = _base(word)
    signs = {*word[len(base) :], base}
    if signs & _OFF:
        return "powered_down"
    if "*" in signs or base not in _KNOWN:
        return "down"
    if signs & _STARTING:
        return "powering_up"
    if signs & _STOPPING:
        return "powering_down"
    return "allocated" if base in _WORKING else "idle"


def read_nodes(*options: str, limit_s: float | None = _LIMIT_S) -> list[Node]:
    """Ask sinfo for nodes; one of several partitions is listed once for each."""
    fields = f"{_SINFO} address=NodeAddr" if "--Node" in options else _SINFO
    return [_node(row) for row in _ask("sinfo", fields, options, limit_s)]


def read_jobs(*options: str, program: str = "squeue", limit_s: float | None = _LIMIT_S) -> list[Job]:
    """Ask squeue or sacct for jobs."""
    fields = _SQUEUE if program == "squeue" else _SACCT
    return [_job(row) for row in _ask(program, fields, options, limit_s)]


def _ask(
    program: str, names: str, options: tuple[str, ...], limit_s: float | None
) -> Iterator[dict[str, str]]:
    """Yield each record; none of a job that Slurm does not know, or has forgotten.

    Raises:
        OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired: it is missing, failed, or hangs.
    """
    end = f"/{secrets.token_hex(8)}/"
    fields = dict(name.split("=") for name in names.split())
    shape = [f"--Format={','.join(f'{field}:{end}' for field in fields.values())}"]
    if program == "sacct":
        shape = ["--parsable", f"--delimiter={end}", f"--format={','.join(fields.values())}"]
    done = subprocess.run(
        [program, "--noheader", *shape, *options],
        timeout=limit_s,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"},
    )
    sys.stderr.write(done.stderr)
    if "invalid job id" in done.stderr.lower():
        return
    done.check_returncode()
    values = [value.strip() for value in done.stdout.split(end)]
    for first in range(0, len(values) - 1, len(fields)):
        yield dict(zip(fields, values[first:]))  # noqa: B905 (3.9)


def _node(row: Mapping[str, str]) -> Node:
    word, partition, since = row["word"], row["partition"], _seconds(row["since"])
    return Node(
        *(partition.rstrip("*"), partition.endswith("*"), row["availability"], word, state_of(word)),
        # A powered down node may be drained, too: idle~ accepts jobs, drained~ does not.
        "*" in word or _base(word) not in _KNOWN,
        *(int(row["number"]), row["name"], since),
        time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since)) if since else "",
        _said(row["reason"]),
        row.get("address", ""),
    )


def _job(row: Mapping[str, str]) -> Job:
    name, job_id, limit = row["name"], row.get("job_id", ""), row["time_limit"]
    words, output = row.get("command", "").split(), _said(row.get("output", ""))
    # Newer versions of Slurm do not fill in sbatch(1)'s filename patterns here.
    for pattern, value in (("%j", job_id), ("%A", job_id), ("%x", name)):
        output = output.replace(pattern, value)
    code, colon, signal = row.get("status", "0:0").partition(":")
    if not colon:  # older versions print the status of waitpid(2)
        code, signal = str(int(code) >> 8), str(int(code) & 0x7F)
    return Job(
        id=row["id"],
        workload=words[1] if len(words) > 1 and words[0].endswith("/job.slurm") else name,
        user=row["user"],
        partition=row["partition"],
        state=row["state"].partition(" ")[0],  # CANCELLED by 1000
        reason=_said(row["reason"]),
        dependency=_said(row.get("dependency", "")),
        nodes=int(row["nodes"]),
        elapsed=row["elapsed"],
        time_limit="UNLIMITED" if limit == _YEAR else limit,
        name=name,
        job_id=job_id,
        uid=int(row.get("uid", "0")),
        account=_said(row.get("account", "")),
        submitted=_seconds(row.get("submitted", "")),
        started=_seconds(row.get("started", "")),
        exit_code=int(code),
        signal=int(signal),
        restarts=int(row.get("restarts", "0")),
        output=output if row.get("is_batch") == "1" else "",
    )


def _base(word: str) -> str:
    return word.rstrip("*~#!%$@^-+").lower()


def _said(word: str) -> str:
    return "" if word in _NOTHING else word


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def _answer(program: str, options: tuple[str, ...]) -> str:
    names: tuple[str, ...] = Job._fields
    if program == "sinfo":
        names = Node._fields
        rows = [tuple(each) for each in read_nodes(*options, limit_s=None)]
    else:
        rows = [tuple(each) for each in read_jobs(*options, program=program, limit_s=None)]
        if not any(option.startswith("--jobs=") for option in options):
            names = names[: names.index("job_id")]  # a list has to be short
    kept = [row[: len(names)] for row in rows]
    while True:
        text = json.dumps({"fields": names, "rows": kept, "is_cut": len(kept) < len(rows)})
        line = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        if len(line) <= _MOST:
            return line
        kept = kept[: len(kept) * 9 // 10]


def main(program: str, *options: str) -> int:
    """Print what a program of Slurm answers; return its exit code."""
    at = options.index("--") if "--" in options else len(options)
    try:
        print(_answer(program, options[:at]), flush=True)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 127
    except subprocess.CalledProcessError as error:
        return error.returncode
    if at < len(options):
        file, offset, count = Path(options[at + 1]), int(options[at + 2]), int(options[at + 3])
        if not file.exists():
            print("-")
            return 0
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            print(size, flush=True)
            start = stream.seek(offset if offset <= size else 0)  # somebody emptied it
            sys.stdout.buffer.write(stream.read(min(count, size - start)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
