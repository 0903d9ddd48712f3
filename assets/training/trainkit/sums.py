"""Sums of the files of checkpoints, by which changed bytes are found before they are loaded.

The formats of weights here (safetensors, torch's, torch.distributed.checkpoint's) have none. A file's sum is
the CRC-32 of each of its parts, as hexadecimal digits: every Python has it, at 2 GB/s a core; threads compute
several parts at a time, and the nodes of a job share the parts of a large file.

run_module.py trainkit.sums CHECKPOINT   prints the changed files of this node's share, in a step of Slurm
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainkit.run.files import write_whole
from trainkit.run.run import Run, die
from trainkit.run.run_files import step_options

PART = 64 * 2**20
"""Bytes of a part; sums of other parts are not comparable."""
_DIGITS, _BLOCK, _THREADS, _LIMIT_S = 8, 2**20, 8, 3600
_NOTE = ".sums-{}.json"
LABEL = "checkpoint.json"
"""File in each checkpoint with its step, the run that made it, and the sizes and sums of its files."""


def sums_of(files: Iterable[Path]) -> dict[Path, str]:
    """Read files, and return their sums."""
    parts = [(file, part) for file in files for part in range(-(-file.stat().st_size // PART))]
    found: dict[Path, str] = dict.fromkeys(files, "")
    with ThreadPoolExecutor(_THREADS) as pool:
        for (file, _), own in zip(parts, pool.map(_sum_of_part, parts), strict=True):
            found[file] += own
    return found


def _sum_of_part(place: tuple[Path, int]) -> str:
    file, part = place
    crc, left = 0, PART
    # One small block, since a new one for each read costs more than its sum.
    block = memoryview(bytearray(_BLOCK))
    with file.open("rb", buffering=0) as stream:
        stream.seek(part * PART)
        while left and (count := stream.readinto(block[: min(left, _BLOCK)])):
            crc, left = zlib.crc32(block[:count], crc), left - count
    return f"{crc:0{_DIGITS}x}"


def files_of_rank(written: Path, rank: int) -> list[Path]:
    """Return the files of torch.distributed.checkpoint's FileSystemWriter of a rank, which it numbers from 0.

    No rank lists the folder: it has the files of all ranks, perhaps 10,000.
    """
    numbered = (written / f"__{rank}_{number}.distcp" for number in itertools.count())
    return list(itertools.takewhile(Path.exists, numbered))


def note_sums(run: Run, written: Path, files: Iterable[Path]) -> None:
    """Note the sums of files that this rank wrote into a partial checkpoint; call it before a barrier.

    The first rank reads files without a note, of any rank, when it publishes the checkpoint.
    """
    sums = {file.relative_to(written).as_posix(): own for file, own in sums_of(list(files)).items()}
    write_whole(written / _NOTE.format(run.rank), json.dumps(sums))


def collect_sums(written: Path) -> dict[str, str]:
    """Return the sums of all files of a partial checkpoint, and remove the ranks' notes."""
    found: dict[str, str] = {}
    for note in written.glob(_NOTE.format("*")):
        found |= json.loads(note.read_text(encoding="utf-8"))
        note.unlink()
    names = {path.relative_to(written).as_posix(): path for path in written.rglob("*") if path.is_file()}
    lacking = sums_of([path for name, path in names.items() if name not in found])
    return found | {path.relative_to(written).as_posix(): own for path, own in lacking.items()}


def noted_sums(checkpoint: Path) -> dict[str, str]:
    """Return the sums in the label of a complete checkpoint; none if an older version wrote it."""
    file = checkpoint / LABEL
    label = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    sums: dict[str, str] = label.get("sums", {})
    return sums


def changed_files(checkpoint: Path, sums: Mapping[str, str], *, share: int = 0, shares: int = 1) -> list[str]:
    """Read a share of the parts of a checkpoint, and return the names of the files with other bytes.

    Dies if a file cannot be read.
    """
    parts = [(name, part) for name, own in sums.items() for part in range(len(own) // _DIGITS)][share::shares]
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            found = list(pool.map(_sum_of_part, [(checkpoint / name, part) for name, part in parts]))
        except OSError as error:
            die(f"{error.filename} cannot be read ({error.strerror}): fix that, and submit again.")
    wanted = [sums[name][part * _DIGITS :][:_DIGITS] for name, part in parts]
    return sorted({name for (name, _), is_, was in zip(parts, found, wanted, strict=True) if is_ != was})


def changed_files_of_job(checkpoint: Path, sums: Mapping[str, str]) -> list[str]:
    """Return the names of the files with other bytes; the nodes of this job share the reading."""
    if int(os.environ.get("SLURM_JOB_NUM_NODES") or 1) > 1:
        step = ["srun", "--overlap", "--quiet", "--mpi=none", "--ntasks-per-node=1", *step_options()]
        starter = Path(__file__).parents[1] / "run_module.py"
        module = [sys.executable, "-I", "-B", str(starter), "trainkit.sums", str(checkpoint)]
        try:
            read = subprocess.run(
                [*step, *module], timeout=_LIMIT_S, check=True, stdout=subprocess.PIPE, text=True
            )
            return sorted(set(read.stdout.splitlines()))
        except (subprocess.SubprocessError, OSError) as error:
            print(f"checkpoints: this node alone reads {checkpoint}: {error}", file=sys.stderr)
    return changed_files(checkpoint, sums)


if __name__ == "__main__":
    place, count = int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1"))
    folder = Path(sys.argv[1])
    for each in changed_files(folder, noted_sums(folder), share=place, shares=count):
        print(each)
