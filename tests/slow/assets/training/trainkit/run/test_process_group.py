"""Process groups of ranks: 200 ends of two ranks without a failure, and timeouts."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.slow.assets.training.training import python_of
from training_cluster.paths import TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

ENDS = 200
# Ranks are forked from one process that has imported torch, which takes seconds.
PROGRAM = """
import atexit, os, sys, tempfile
from pathlib import Path
import torch, torch.distributed as dist
from trainkit.run import process_group
from trainkit.run.run import Run

def rank_main(rank, folder):
    folders = dict.fromkeys(("run_dir", "data_dir", "checkpoint_dir"), folder)
    run = Run(**folders, rank=rank, local_rank=rank, world_size=2)
    store = f"file://{folder}/store"
    process_group.join(run, "gloo", init_method=store, rank=rank, world_size=2)
    dist.all_reduce(torch.ones(2))
    process_group.shorten()
    with process_group.patient(run, "saving"):
        pass
    process_group.background_group()
    print("done", rank)
    if sys.argv[2] == "gpu":
        torch.cuda.is_available = lambda: True
    if sys.argv[2] == "neuron":
        dist.barrier()
        dist.destroy_process_group()
        atexit._run_exitfuncs()
    process_group.leave()

failed = 0
for _ in range(int(sys.argv[1])):
    folder, ranks = Path(tempfile.mkdtemp()), []
    for rank in range(2):
        if not (process := os.fork()):
            rank_main(rank, folder)
        ranks.append(process)
    failed += any([os.waitpid(process, 0)[1] for process in ranks])
print("failed ends:", failed)
"""
TIMEOUTS = """
import sys
from datetime import timedelta
from pathlib import Path
import torch, torch.distributed as dist
from trainkit.run import process_group
from trainkit.run.run import Run

def say():
    backends = [group._get_backend(torch.device("cpu")) for group in (dist.group.WORLD, background)]
    print(*(backend.options._timeout for backend in backends))

folder = Path(sys.argv[1])
folders = dict.fromkeys(("run_dir", "data_dir", "checkpoint_dir"), folder)
run = Run(**folders, rank=0, local_rank=0, world_size=1)
# As fairseq makes the process group.
dist.init_process_group("gloo", f"file://{folder}/store", timeout=timedelta(minutes=10), rank=0, world_size=1)
import torch.testing._internal.distributed.fake_pg
fake = dist.new_group(backend="fake")
process_group.lengthen()
background = process_group.background_group()
say()
process_group.shorten()
say()
with process_group.patient(run, "saving"):
    say()
say()
"""


def run(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program on CPUs in the Python environment of nccl-tests."""
    env = {
        "TMPDIR": str(folder),
        "PYTHONPATH": str(TRAINING),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [python_of("nccl-tests"), "-B", "-c", program, *arguments],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.parametrize("ending", ["gpu", "neuron"])
def test_two_hundred_ends_of_two_ranks_are_clean(tmp_path: Path, ending: str) -> None:
    """As trainers end on GPUs and on Trainium, with gloo in the place of their own groups."""
    done = run(PROGRAM, str(ENDS), ending, folder=tmp_path)
    assert done.stdout.endswith("failed ends: 0\n"), done.stdout[-2000:] + done.stderr[-2000:]
    # What ranks printed is not lost, though the interpreter does not end as usual.
    assert done.stdout.count("done") == 2 * ENDS


def test_ranks_wait_longest_in_starts_and_saves(tmp_path: Path) -> None:
    done = run(TIMEOUTS, str(tmp_path), folder=tmp_path)
    long, short = "0:30:00 0:30:00", "0:05:00 0:30:00"
    assert done.stdout.splitlines() == [long, short, long, short], done.stderr
    assert "Set timeout is now only supported" not in done.stderr
