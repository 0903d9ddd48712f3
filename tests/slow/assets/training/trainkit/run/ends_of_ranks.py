"""Starts and ends of a workload's trainer on two ranks, forked in pairs from one process with torch.

Run by the workload's Python in the place of its ranks: ends_of_ranks.py TRAIN_PY. Environment: ENDS, the
number of pairs; ENDS_FROM, a run's folder that prepare.sh has filled; ENDS_IN, a folder for the runs;
ENDS_IMPORTS, modules to import before, MODULE:FUNCTION for one with a function to call. Prints the output of
each pair that failed, and "failed ends: N"; on stderr, the progress.
"""

import importlib
import os
import runpy
import shutil
import socket
import sys
from pathlib import Path

script, folder = sys.argv[1], Path(os.environ["ENDS_IN"])
sys.path.insert(0, str(Path(script).parent))
sys.argv = [script]
for name in os.environ["ENDS_IMPORTS"].split():
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    if function:
        getattr(imported, function)()


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


def end_two(run: Path) -> bool:
    """Start two ranks of a run of its own, and wait for their ends; return True if both are clean."""
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
    statuses = [os.waitpid(process, 0)[1] for process in ranks]
    return statuses == [0, 0]


failed = 0
for number in range(int(os.environ["ENDS"])):
    run = folder / str(number)
    is_clean = end_two(run)
    done = (run / "outcome").is_file() and (run / "outcome").read_text() == "finished\n"
    if not (is_clean and done):
        failed += 1
        print(*(log.read_text()[-2000:] for log in run.glob("rank-*.log")), flush=True)
    shutil.rmtree(run)
    print(f"{number + 1} ends, {failed} failed", file=sys.stderr, flush=True)
print("failed ends:", failed)
