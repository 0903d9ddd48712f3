"""Ranks on three nodes that save to the nodes' own disks, lose some of it and start again.

Prints what they did. The state of a rank is a number, in a file of its own, for each step.
"""

# mypy: disable-error-code="import-not-found"

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from trainkit import sums
from trainkit.local_checkpoints import LocalCheckpoints
from trainkit.run import process_group
from trainkit.run.run import Run

FOLDER = Path(tempfile.mkdtemp())
DISK, STEPS = FOLDER / "disk", 6
sums.PART = 1000
os.environ |= {"SCRATCH": str(DISK), "SLURM_JOB_ID": "7", "NPROC_PER_NODE": "1"}
Write = Callable[[Path, float], object]


def write(folder: Path, state: float) -> None:
    """Write a state of several blocks, and an empty file."""
    (folder / "state").write_text(f"{state}\n" + "x" * 2500)
    (folder / "empty").touch()


def rank_of(run: Run, is_sharded: bool, steps: range, writes: Write, loads: bool) -> dict[str, Any]:
    """Start as one rank: return the state from which it continues, and the steps at which it saved."""
    local = LocalCheckpoints(run, every=2, is_sharded=is_sharded)
    found, saved = local.restore(None), []
    if found and not loads and run.rank == 1:
        with contextlib.suppress(SystemExit), local.loading(found):
            raise ValueError("a tensor has another shape")
    state = found and [found.parent.name, float((found / "state").read_text().split()[0])]
    for step in steps:
        if local.due(step):
            copied: Future[float] = Future()
            copied.set_result(step + run.rank / 10 * is_sharded)
            local.save(step, copied, writes)
            local.finish()
            saved.append(step)
    parts = sorted(str(part.relative_to(local._folder)) for part in local._folder.glob("step-*/*"))
    return {"state": state, "saved": saved, "parts": parts}


def start(
    number: int,
    nodes: str,
    *,
    is_sharded: bool = True,
    steps: range = range(0),
    writes: Write = write,
    loads: bool = True,
) -> Any:
    """Fork a rank for each node; return what they found, and what the first one said."""
    os.environ["START_NUMBER"] = str(number)
    (FOLDER / "metrics.jsonl").write_text(json.dumps({"step": STEPS, "loss": 1.0}) + "\n")
    for rank, node in enumerate(nodes):
        if not os.fork():
            os.environ["SLURMD_NODENAME"] = node
            own = {"rank": rank, "world_size": len(nodes)}
            run = Run(run_dir=FOLDER, data_dir=FOLDER, checkpoint_dir=FOLDER, local_rank=0, **own)
            process_group.join(run, "gloo", init_method=f"file://{FOLDER}/store-{number}", **own)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                found = rank_of(run, is_sharded, steps, writes, loads)
            (FOLDER / f"found-{rank}").write_text(json.dumps(found | {"said": said.getvalue()}))
            process_group.leave()
    assert [os.wait()[1] for _ in nodes] == [0] * len(nodes)
    (FOLDER / f"store-{number}").unlink(missing_ok=True)
    return [json.loads((FOLDER / f"found-{rank}").read_text()) for rank in range(len(nodes))]


def full(folder: Path, state: float) -> None:
    """Write, but on the disk of the last rank, which is full at step 4."""
    if state == 4.2:
        raise OSError(28, "No space left on device")
    write(folder, state)


def of(node: str, part: str = "*") -> list[Path]:
    """Return a node's parts of the newest checkpoint."""
    (job,) = DISK.glob(f"*/7-{node}")
    return sorted(sorted(job.glob("step-*"))[-1].glob(part))


def flip(file: Path) -> int:
    """Flip a bit of a file."""
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    return file.write_bytes(content)


def main() -> None:
    """Print what each scene found."""
    DISK.mkdir()
    found = {"saved": start(0, "abc", steps=range(1, STEPS + 1))}
    shutil.copytree(DISK, FOLDER / "kept")
    losses: dict[str, tuple[str, Callable[[], object]]] = {
        "same": ("abc", lambda: None),
        "lost": ("abd", lambda: None),
        "renumbered": ("bcd", lambda: None),
        "two lost": ("ade", lambda: None),
        "fewer": ("ab", lambda: None),
        "flipped": ("abc", lambda: flip(of("b", "rank-00001*")[0] / "state")),
        "torn": (
            "abc",
            lambda: [*map(shutil.rmtree, [*of("b", "rank-00001*"), *of("c", "rank-00001*")])],
        ),
    }
    for number, (name, (nodes, harm)) in enumerate(losses.items(), 1):
        harm()
        found[name] = start(number, nodes)
        shutil.rmtree(DISK)
        shutil.copytree(FOLDER / "kept", DISK)
    found["full"] = start(8, "abc", steps=range(1, STEPS + 1), writes=full)
    shutil.rmtree(DISK)
    shutil.copytree(FOLDER / "kept", DISK)
    start(9, "abc", loads=False)
    found["unloadable"] = start(10, "abc")
    found["local_step"] = (FOLDER / "local_step").read_text()
    shutil.rmtree(DISK)
    DISK.mkdir()
    start(11, "abc", is_sharded=False, steps=range(1, 5))
    found["alike"] = start(12, "de" + "a", is_sharded=False)
    print(json.dumps(found))


main()
