"""torchrun in a few lines: the arguments that launch.sh gives it, and one process a rank."""

import argparse
import os
import signal
import subprocess
import sys

parser = argparse.ArgumentParser()
for name in ("nnodes", "node-rank", "nproc-per-node", "master-port"):
    parser.add_argument(f"--{name}", type=int, required=True)
for name in ("master-addr", "log-dir", "redirects", "tee"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("command", nargs=argparse.REMAINDER)
given = parser.parse_args()

# On a cluster Slurm signals only what it started itself, which is train.sh; here it signals all.
signal.signal(signal.SIGTERM, lambda *_: None)
ranks = []
for local_rank in range(given.nproc_per_node):
    rank = given.node_rank * given.nproc_per_node + local_rank
    world = {"RANK": rank, "LOCAL_RANK": local_rank, "WORLD_SIZE": given.nnodes * given.nproc_per_node}
    environment = os.environ | {key: str(value) for key, value in world.items()}
    ranks.append(subprocess.Popen([sys.executable, *given.command], env=environment))
sys.exit(max(abs(rank.wait()) for rank in ranks) and 1)
