"""Matrix products in 16 bits on all GPUs at once: their speed, and what slows a GPU that works.

Started by train.sh with MEASURE_WITH=product, one process a rank, which exchanges results only. Prints a line
for each rank, and writes metrics.jsonl: a row a series of products, whose mfu is the slowest rank's share of
the peak. A GPU that heat or its supply slows is a fault, which finish.sh reads.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import time

import torch
import torch.distributed as dist
from trainkit.run import process_group
from trainkit.run.files import write_whole
from trainkit.run.run import Run
from trainkit.run.world import check_world

SIDE = {"cuda": 8192, "cpu": 256}
"""Rows and columns of each matrix."""
SERIES, SERIES_S = 10, {"cuda": 1.0, "cpu": 0.02}
_STATE = "{}, driver {}, SM {} of {} MHz, {} C, {} W, PCIe {} x{} of {} x{}"
_FIELDS = (
    "name,driver_version,clocks.sm,clocks.max.sm,temperature.gpu,power.draw,"
    "pcie.link.gen.current,pcie.link.width.current,pcie.link.gen.max,pcie.link.width.max"
)
# Not sw_power_cap: a good GPU reaches its power limit in these products.
_SLOWED = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")


class Products:
    """Products of two matrices on the device of this rank."""

    def __init__(self, device: torch.device) -> None:
        # A V100 has no fast products in bf16.
        dtype = torch.float16 if os.environ.get("MIXED_PRECISION") == "fp16" else torch.bfloat16
        self._device, self._side = device, SIDE[device.type]
        self._matrices = torch.randn(3, self._side, self._side, device=device).to(dtype)
        self.tflops(5)  # warms up
        self.of_series = max(1, round(SERIES_S[device.type] * self.tflops(5) * 1e12 / (2 * self._side**3)))

    def tflops(self, count: int) -> float:
        """Return the speed of a number of products in TFLOP/s."""
        left, right, out = self._matrices
        self._wait()
        started = time.perf_counter()
        for _ in range(count):
            torch.mm(left, right, out=out)
        self._wait()
        return 2 * self._side**3 * count / (time.perf_counter() - started) / 1e12

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def ask(gpu: int) -> subprocess.Popen[str]:
    """Start nvidia-smi, which prints a line of values of a GPU, or a complaint."""
    fields = ",".join([_FIELDS, *(f"clocks_event_reasons.{each}" for each in _SLOWED)])
    command = f"nvidia-smi --id={gpu} --query-gpu={fields} --format=csv,noheader,nounits 2>&1"
    return subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True)


def read(answer: str) -> tuple[str, list[str]]:
    """Return the state of a GPU for people, and the names of what slows it."""
    cells = [each.strip() for each in answer.split(",")]
    values, reasons = cells[: -len(_SLOWED)], cells[-len(_SLOWED) :]
    if len(values) != _FIELDS.count(",") + 1:
        return f"nvidia-smi: {answer.strip()}", []
    return _STATE.format(*values), [
        name for name, is_on in zip(_SLOWED, reasons, strict=True) if is_on == "Active"
    ]


def main() -> None:
    """Measure as one rank."""
    run, is_gpu = Run.from_environment(), os.environ["MEASURED_DEVICE"] == "gpu"
    device = torch.device("cuda", run.local_rank) if is_gpu else torch.device("cpu")
    if is_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if is_gpu else "gloo")
    check_world(device)
    products, own, slowest = Products(device), list[float](), list[float]()
    for number in range(SERIES):
        if number == SERIES // 2:
            asked = ask(run.local_rank)
        own.append(products.tflops(products.of_series))
        least = torch.tensor(own[-1], device=device)
        dist.all_reduce(least, op=dist.ReduceOp.MIN)
        slowest.append(float(least))
    state, slowed = read(asked.communicate()[0])
    speed, peak = statistics.median(own), run.peak_tflops
    share = f", {speed / peak:.0%} of the peak" if peak else ""
    place = f"device {run.local_rank} of {os.environ.get('SLURMD_NODENAME') or socket.gethostname()}"
    said: list[tuple[str, list[str]]] = [("", [])] * run.world_size
    dist.all_gather_object(said, (f"{place}: {speed:,.3g} TFLOP/s{share}; {state}", slowed))
    if run.is_first:
        rows = [
            {
                "step": number,
                "tflops": each,
                "world_size": run.world_size,
                **({"mfu": each / peak} if peak else {}),
            }
            for number, each in enumerate(slowest, start=1)
        ]
        write_whole(run.run_dir / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for line, reasons in said:
            print(line)
            if reasons:
                print(f"product.py: {line.partition(':')[0]} is slowed while it works: {', '.join(reasons)}")
                print(
                    "  Replace its node if it stays so: scontrol update nodename=NODE state=drain reason=slow"
                )
    process_group.leave()


if __name__ == "__main__":
    main()
