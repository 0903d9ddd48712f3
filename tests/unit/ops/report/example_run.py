"""Example runs with the files of job.slurm and the workloads, for tests and for the docs' pictures.

python -m tests.unit.ops.report.example_run FOLDER    makes FOLDER/runs/... and FOLDER/checkpoints/...
"""

import datetime
import json
import math
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BEGIN = datetime.datetime(2026, 3, 2, 9, 0, tzinfo=datetime.UTC)
P4D = {
    "FAMILY": "p4d",
    "INSTANCE_TYPE": "p4d.24xlarge",
    "CAPACITY": "ondemand",
    "RANKS_PER_NODE": "8",
    "MIXED_PRECISION": "bf16",
    "ACCELERATOR_KIND": "gpu",
    "NNODES": "2",
    "NPROC_PER_NODE": "8",
    "LAUNCHER": "torchrun",
    "MAX_STEPS": "2000",
    "BATCH_SIZE": "16",
    "LEARNING_RATE": "6e-4",
    "WARMUP_STEPS": "100",
    "CHECKPOINT_EVERY": "250",
}
SHAPE = {"gpt2_layers": 12, "gpt2_heads": 12, "gpt2_width": 768, "gpt2_context": 1024}
# Steps after which a rank dies; the run resumes from the checkpoint before.
_DEATHS = (640, 1410)


def _validation(row: Mapping[str, Any], every: int) -> list[dict[str, Any]]:
    """Return the validation behind a step, if it has one."""
    if row["step"] % every:
        return []
    loss = round(row["loss"] + 0.04, 4)
    return [{"step": row["step"], "val_loss": loss, "val_s": 6.1, "time": row["time"]}]


def write_training(
    shared: Path,
    *,
    workload: str = "gpt2",
    run: str = "job-17",
    job: str = "17",
    steps: int = 2000,
    seed: int = 1,
    deaths: tuple[int, ...] = _DEATHS,
    settings: Mapping[str, str] = P4D,
) -> Path:
    """Write a run with noise, data stalls, two restarts and checkpoints; return its folder."""
    noise = random.Random(seed)
    every, nodes = int(settings["CHECKPOINT_EVERY"]), f"train-dy-p4d-[1-{settings['NNODES']}]"
    world = int(settings["NNODES"]) * int(settings["NPROC_PER_NODE"])
    rate, batch = float(settings["LEARNING_RATE"]), int(settings["BATCH_SIZE"])
    tokens_a_step = world * batch * 1024
    folder, saved = shared / "runs" / workload / run, shared / "checkpoints" / workload / run
    folder.mkdir(parents=True)
    saved.mkdir(parents=True)
    now, step, restart, left = _BEGIN, 0, 0, list(deaths)
    rows: list[dict[str, float | str]] = []
    starts, ends = [f"0 0 {now:%FT%TZ} {nodes} {job} 0 {settings['NNODES']} 90\n"], []
    while step < steps:
        if left and step == left[0]:
            left.pop(0)
            ends.append(f"{job} {restart} {now:%FT%TZ} 1\n")
            restart, step = restart + 1, step // every * every
            rows = rows[:step]
            now += datetime.timedelta(seconds=15)
            held = f"0 {settings['NNODES']} {(now - _BEGIN).seconds + 90}"
            starts.append(f"{restart} {step} {now:%FT%TZ} {nodes} {job} {held}\n")
            now += datetime.timedelta(seconds=40)
        step += 1
        stalls = 900 < step < 960 or noise.random() < 0.004
        data_s = noise.uniform(0.4, 0.9) if stalls else noise.uniform(0.01, 0.03)
        step_s = tokens_a_step / (world * 52_000) + abs(noise.gauss(0, 0.006)) + data_s
        now += datetime.timedelta(seconds=step_s)
        rows.append(
            {
                "step": step,
                "loss": round(
                    2.95 + 7.9 * math.exp(-step * rate / 0.09) + noise.gauss(0, 0.05) + 40 / (step + 40), 4
                ),
                "grad_norm": round(0.3 + 2 * math.exp(-step / 80), 4),
                "learning_rate": rate
                * min(1, step / int(settings["WARMUP_STEPS"]))
                * (1 - 0.9 * step / steps),
                "tokens": step * tokens_a_step,
                "tokens_per_s": round(tokens_a_step / step_s, 1),
                "step_s": round(step_s, 4),
                "data_s": round(data_s, 4),
                "memory_bytes": int(31.2 * 2**30) if step < every else int(33.6 * 2**30),
                "world_size": world,
                "mfu": round(tokens_a_step / step_s * 8.6e8 / (312e12 * world), 4),
                "time": now.isoformat(timespec="milliseconds"),
            }
        )
        if step % every == 0:
            _save(saved / f"step-{step:06d}", now)
    ends.append(f"{job} {restart} {now:%FT%TZ} 0\n")
    lines = (each for row in rows for each in (row, *_validation(row, every)))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "starts").write_text("".join(starts))
    (folder / "ends").write_text("".join(ends))
    (folder / "outcome").write_text("finished\n")
    (folder / "data.json").write_text(json.dumps({"corpus": "openwebtext", "init_from": "scratch"}))
    _write_settings(folder, settings, restarts=restart, job=job)
    return folder


def write_all_reduce(shared: Path, *, run: str = "job-21") -> Path:
    """Write a run of nccl-tests on two p4d nodes; return its folder."""
    folder = shared / "runs" / "nccl-tests" / run
    folder.mkdir(parents=True)
    noise = random.Random(2)
    rows = []
    for number, power in enumerate(range(10, 35), start=1):
        size = 2**power
        busbw = 45.5 / (1 + 3.2e7 / size) * noise.uniform(0.97, 1.02)
        rows.append(
            {"step": number, "message_bytes": size, "busbw_gb_per_s": round(busbw, 3), "world_size": 16}
        )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "starts").write_text(f"0 0 {_BEGIN:%FT%TZ} train-dy-p4d-[1-2] 21\n")
    (folder / "ends").write_text(f"21 0 {_BEGIN + datetime.timedelta(minutes=4):%FT%TZ} 0\n")
    _write_settings(folder, P4D | {"NCCL_FLOORS": "2:1:41 4:1:38", "LAUNCHER": "srun"}, job="21")
    return folder


def _save(folder: Path, now: datetime.datetime) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "weights").open("wb") as weights:
        weights.truncate(1_493_000_000)  # a sparse file needs no space
    (folder / "checkpoint.json").write_text(json.dumps({"settings": SHAPE}))
    for file in folder.iterdir():
        os.utime(file, (now.timestamp(), now.timestamp()))


def _write_settings(folder: Path, settings: Mapping[str, str], *, restarts: int = 0, job: str = "17") -> None:
    lines = "".join(f"{name}={value}\n" for name, value in sorted(settings.items()))
    for restart in range(restarts + 1):
        (folder / f"settings-{job}-{restart}.env").write_text(lines)


def write_examples(shared: Path) -> list[Path]:
    """Write two trainings that differ in a setting, and a test of the network.

    Each picture shows the names of the runs, which say that they are examples.
    """
    other = P4D | {"LEARNING_RATE": "3e-4"}
    return [
        write_training(shared, run="example-data"),
        write_training(
            shared, run="example-data-lower-rate", job="19", seed=3, deaths=(1130,), settings=other
        ),
        write_all_reduce(shared),
    ]


if __name__ == "__main__":
    print("\n".join(map(str, write_examples(Path(sys.argv[1])))))
