"""An all-reduce over gloo between CPUs, timed and printed as nccl-tests' all_reduce_perf prints it.

For nodes without GPUs, and for rehearsals. Started by train.sh, one process a rank.
"""

from __future__ import annotations

import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
from trainkit.run.world import check_world

_ITERATIONS, _WARM_UP = 10, 2


def time_one(elements: int, *, ranks: int) -> tuple[float, int]:
    """Time an all-reduce of `elements` floats (mean of the slowest rank), and count the wrong values."""
    values = torch.empty(elements)
    for _ in range(_WARM_UP):
        dist.all_reduce(values.fill_(1.0))
    wrong = int((values != float(ranks)).sum())
    dist.barrier()
    started = time.perf_counter()
    for _ in range(_ITERATIONS):
        dist.all_reduce(values)
    seconds = torch.tensor([(time.perf_counter() - started) / _ITERATIONS, float(wrong)], dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return float(seconds[0]), int(seconds[1])


def run(least: int, most: int) -> None:
    """List message sizes from `least` bytes, doubled up to `most`."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    hosts: list[tuple[int, str]] = [(0, "")] * ranks
    dist.all_gather_object(hosts, (os.getpid(), socket.gethostname()))
    if rank == 0:
        print(f"# minBytes {least} maxBytes {most} warmup iters: {_WARM_UP} iters: {_ITERATIONS}")
        for i, (pid, host) in enumerate(hosts):
            print(f"#  Rank {i:2} Group  0 Pid {pid:6} on {host:>10} device  0 [cpu] gloo")
        half = "    time   algbw   busbw #wrong"
        print(f"#       size         count      type   redop    root {half} {half}")
    total_wrong, bandwidths = 0, []
    message = least
    while message <= most:
        seconds, wrong = time_one(message // 4, ranks=ranks)
        algbw = message / seconds / 1e9
        busbw = algbw * 2 * (ranks - 1) / ranks
        total_wrong += wrong
        bandwidths.append(busbw)
        if rank == 0:
            measured = f"{seconds * 1e6:9.1f} {algbw:7.3f} {busbw:7.3f} {wrong:6}"
            print(f"{message:12} {message // 4:13}     float     sum      -1 {measured} {measured}")
        message *= 2
    if rank == 0:
        print(f"# Out of bounds values : {total_wrong} {'FAILED' if total_wrong else 'OK'}")
        print(f"# Avg bus bandwidth    : {sum(bandwidths) / len(bandwidths):.4f}")


def main() -> None:
    """Measure all sizes as one rank."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--min-bytes", type=int, default=int(os.environ.get("MIN_BYTES", "8")))
    parser.add_argument("--max-bytes", type=int, default=int(os.environ.get("MAX_BYTES", str(2**30))))
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    check_world(torch.device("cpu"))
    run(max(4, arguments.min_bytes), arguments.max_bytes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
