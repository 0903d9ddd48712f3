"""Starts and ends of a workload's trainer on two ranks, forked in pairs from one process with torch.

Run by the workload's Python in the place of its ranks: ends_of_ranks.py TRAIN_PY. Environment: ENDS, the
number of pairs; ENDS_FROM, a run's folder that prepare.sh has filled; ENDS_IN, a folder for the runs;
ENDS_IMPORTS, modules to import before, MODULE:FUNCTION for one with a function to call. Prints the output of
each pair that failed, and "failed ends: N"; on stderr, the progress.
"""

import gc
import importlib
import os
import runpy
import shutil
import socket
import sys
from pathlib import Path

# Pairs that run at the same time: a rank waits for files and for the other one most of its time.
AT_ONCE = 3

script, folder = sys.argv[1], Path(os.environ["ENDS_IN"])
sys.path.insert(0, str(Path(script).parent))
sys.argv = [script]
for name in os.environ["ENDS_IMPORTS"].split():
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    if function:
        getattr(imported, function)()
# A fork takes one thread and the locks of all: such ranks would end otherwise than those of a job.
# jemalloc, which pyarrow has, handles a fork by itself.
tasks = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
if len(threads := [name for name in tasks if name != "jemalloc_bg_thd"]) > 1:
    sys.exit(f"no rank can be forked, since {os.environ['ENDS_IMPORTS']} started threads: {threads}")
# A collection in a rank would otherwise write into, and so copy, each page of what was imported.
gc.freeze()


def free_port() -> int:
    """Find a port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def end_as(rank: int, run: Path) -> None:
    """Train as one rank, with its output in a file; an interpreter that returns from here ends as usual."""
    output = os.open(run / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    runpy.run_path(script, run_name="__main__")


def start_two(run: Path) -> list[int]:
    """Start two ranks of a run of its own; return their process ids."""
    shutil.copytree(os.environ["ENDS_FROM"], run)
    (run / "checkpoints").mkdir()
    os.environ |= {"RUN_DIR": str(run), "CHECKPOINT_DIR": str(run / "checkpoints")}
    os.environ["MASTER_PORT"] = str(free_port())
    ranks = []
    for rank in range(2):
        if not (process := os.fork()):
            end_as(rank, run)
            sys.exit()
        ranks.append(process)
    return ranks


def is_clean(run: Path, statuses: list[int]) -> bool:
    """Return True if both ranks ended well and the run is finished; print their output if not."""
    outcome = run / "outcome"
    clean = statuses == [0, 0] and outcome.is_file() and outcome.read_text() == "finished\n"
    if not clean:
        print(statuses, *(log.read_text()[-2000:] for log in run.glob("rank-*.log")), flush=True)
    return clean


ends = int(os.environ["ENDS"])
started = ended = failed = 0
run_of: dict[int, Path] = {}
statuses_of: dict[Path, list[int]] = {}
while ended < ends:
    while started < ends and started - ended < AT_ONCE:
        run = folder / str(started)
        run_of |= dict.fromkeys(start_two(run), run)
        statuses_of[run] = []
        started += 1
    process, status = os.wait()
    run = run_of.pop(process)
    statuses_of[run].append(status)
    if len(statuses_of[run]) == 2:
        ended += 1
        failed += not is_clean(run, statuses_of.pop(run))
        shutil.rmtree(run)
        print(f"{ended} ends, {failed} failed", file=sys.stderr, flush=True)
print("failed ends:", failed)
