"""An all-reduce by torch's NCCL between GPUs, or gloo between CPUs, with the output of all_reduce_perf.

Started by train.sh, one process a rank. It measures the libraries with which the workloads train, and needs
no compiler. The buffer is reduced in place.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from trainkit.run import process_group
from trainkit.run.world import check_world

_WARM_UP = 2
_BYTES = 4
"""Bytes of a float, the type that is reduced."""
_PATTERN = 2**24
"""Numbers that repeat in a buffer: 64 MiB."""
_PERIOD = 251
"""Whole numbers from 0 on that repeat in the pattern; sums over 60,000 ranks are exact in fp32."""
_SHARE = 0.7
"""Share of a GPU's free memory that the largest message may take."""


@dataclass(frozen=True)
class Rank:
    """This rank, its device, and the patterns that it gives and expects."""

    rank: int
    ranks: int
    device: torch.device
    iterations: int

    @property
    def pattern(self) -> torch.Tensor:
        """Return the numbers of this rank before the reduction."""
        return torch.arange(_PATTERN, device=self.device).remainder_(_PERIOD).add_(self.rank).float()

    @property
    def reduced(self) -> torch.Tensor:
        """Return the sum over all ranks."""
        numbers = torch.arange(_PATTERN, device=self.device).remainder_(_PERIOD)
        return numbers.mul_(self.ranks).add_(self.ranks * (self.ranks - 1) // 2).float()

    def wait(self) -> None:
        """Wait until the device has finished its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def time_one(self, elements: int) -> tuple[float, int]:
        """Time an all-reduce of `elements` floats (mean of the slowest rank), and count the wrong values."""
        values = torch.empty(elements, device=self.device)
        pattern, reduced = self.pattern, self.reduced
        for part in values.split(_PATTERN):
            part.copy_(pattern[: len(part)])
        dist.all_reduce(values)
        wrong = sum(int((part != reduced[: len(part)]).sum()) for part in values.split(_PATTERN))
        for _ in range(_WARM_UP):
            dist.all_reduce(values.zero_())
        self.wait()
        dist.barrier()
        started = time.perf_counter()
        for _ in range(self.iterations):
            dist.all_reduce(values)
        self.wait()
        seconds = (time.perf_counter() - started) / self.iterations
        slowest = torch.tensor([seconds, float(wrong)], dtype=torch.float64, device=self.device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return float(slowest[0]), int(slowest[1])

    def largest(self, most: int) -> int:
        """Return the bytes of the largest message, at most `most`, that fits into all GPUs."""
        if self.device.type != "cuda":
            return most
        free = torch.tensor([torch.cuda.mem_get_info(self.device)[0]], device=self.device)
        dist.all_reduce(free, op=dist.ReduceOp.MIN)
        return min(most, int(int(free) * _SHARE))


def run(rank: Rank, least: int, most: int) -> None:
    """List message sizes from `least` bytes, doubled up to `most`."""
    is_gpu = rank.device.type == "cuda"
    what = f"{torch.cuda.get_device_name(rank.device)} torch's NCCL {_nccl()}" if is_gpu else "cpu gloo"
    hosts: list[tuple[int, str]] = [(0, "")] * rank.ranks
    dist.all_gather_object(hosts, (os.getpid(), socket.gethostname()))
    if rank.rank == 0:
        print(f"# minBytes {least} maxBytes {most} warmup iters: {_WARM_UP} iters: {rank.iterations}")
        for i, (pid, host) in enumerate(hosts):
            print(f"#  Rank {i:2} Group  0 Pid {pid:6} on {host:>10} {what}")
        half = "    time   algbw   busbw #wrong"
        print(f"#       size         count      type   redop    root {half} {half}")
    total_wrong, bandwidths = 0, []
    fits = rank.largest(most)
    message = least
    while message <= fits:
        seconds, wrong = rank.time_one(message // _BYTES)
        algbw = message / seconds / 1e9
        busbw = algbw * 2 * (rank.ranks - 1) / rank.ranks
        total_wrong += wrong
        bandwidths.append(busbw)
        if rank.rank == 0:
            measured = f"{seconds * 1e6:9.1f} {algbw:7.3f} {busbw:7.3f} {wrong:6}"
            print(
                f"{message:12} {message // _BYTES:13}     float     sum      -1 {measured} {measured}",
                flush=True,
            )
        message *= 2
    if rank.rank == 0:
        if message <= most:
            print(f"# Messages of {message} bytes and more do not fit into the GPUs' memory")
        print(f"# Out of bounds values : {total_wrong} {'FAILED' if total_wrong else 'OK'}")
        print(f"# Avg bus bandwidth    : {sum(bandwidths) / max(1, len(bandwidths)):.4f}")


def _nccl() -> str:
    return ".".join(map(str, torch.cuda.nccl.version()))


def _bytes(text: str) -> int:
    """Parse 1024, 16K, 128M or 16G, as all_reduce_perf does."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    if not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a size; give bytes, or a number with K, M or G: 16G'
        )
    return int(number) * unit


def main() -> None:
    """Measure all sizes as one rank."""
    is_gpu = os.environ["MEASURED_DEVICE"] == "gpu"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-b", "--min-bytes", type=_bytes, default=os.environ.get("MIN_BYTES") or "8")
    most = os.environ.get("MAX_BYTES") or ("16G" if is_gpu else "1G")
    parser.add_argument("-e", "--max-bytes", type=_bytes, default=most)
    parser.add_argument("-n", "--iterations", type=int, default=20 if is_gpu else 10)
    arguments = parser.parse_args()
    device = torch.device("cpu")
    if is_gpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if is_gpu else "gloo")
    check_world(device)
    rank = Rank(dist.get_rank(), dist.get_world_size(), device, max(1, arguments.iterations))
    run(rank, max(_BYTES, arguments.min_bytes), arguments.max_bytes)
    process_group.leave()


if __name__ == "__main__":
    main()
