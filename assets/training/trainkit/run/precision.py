"""Check that the device of a rank exists and supports the precision of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainkit.run.run import die

NAMES = ("bf16", "fp16", "no")
CPUINFO = Path("/proc/cpuinfo")
# A CPU without these flags trains slower in bf16 than in fp32.
CPU_BF16 = frozenset({"avx512_bf16", "amx_bf16"})
AMPERE = (8, 0)


def check_precision(name: str, device: Any, *, cpuinfo: Path = CPUINFO) -> None:
    """Die unless `device` (such as "cuda:0") exists and supports `name`: bf16, fp16 or no."""
    if name not in NAMES:
        die(f'MIXED_PRECISION is "{name}"; allowed: {", ".join(NAMES)}.')
    kind = str(device).partition(":")[0]
    if kind == "cpu":
        _check_cpu(name, cpuinfo)
    elif kind == "cuda":
        _check_cuda(name, device)


def _check_cpu(name: str, cpuinfo: Path) -> None:
    if name == "fp16":
        die("no CPU trains in fp16: type MIXED_PRECISION=no, or bf16 on a CPU that has it.")
    if name == "bf16" and not CPU_BF16 & _cpu_flags(cpuinfo):
        die(
            f"this CPU has none of {', '.join(sorted(CPU_BF16))}, so bf16 would be slower than fp32: "
            "type MIXED_PRECISION=no, or take a family with AMX (r7iz, m7i)."
        )


def _cpu_flags(cpuinfo: Path) -> set[str]:
    lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    return set(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _check_cuda(name: str, device: Any) -> None:
    import torch  # noqa: PLC0415 (loads for seconds, and some trainers have none)

    rank, visible = torch.device(device).index or 0, torch.cuda.device_count()
    if rank >= visible:
        die(
            f"no GPU is visible for local rank {rank}, of {visible} here: look with nvidia-smi, or train on "
            "CPUs with DEVICE=cpu."
        )
    capability = torch.cuda.get_device_capability(device)
    if name == "bf16" and capability < AMPERE:
        die(
            f"{torch.cuda.get_device_name(device)} (compute capability {'.'.join(map(str, capability))}) has "
            "no bf16: type MIXED_PRECISION=fp16 (its tensor cores have it), or no."
        )
