"""Tokenizing of a text into shards: streaming, in several processes, and resumed where it was interrupted.

A corpus consists of units. One process reads a unit, which becomes at most one shard per split. A finished
unit has a record in FOLDER/.units/ with the fingerprint of its input; the next start keeps the unit if the
fingerprint is the same. The content of shards does not depend on the number of processes.
"""

from __future__ import annotations

import array
import json
import multiprocessing
import re
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from trainkit.data.shards import MANIFEST, Manifest, Shard, ShardError, write_manifest
from trainkit.data.tokenize_unit import (
    ARRAY_TYPES,
    UNITS,
    Recipe,
    begin,
    make_unit,
    record_of,
)

PROGRESS_EVERY_S = 10.0


def prepare(
    recipe: Recipe,
    *,
    workers: int,
    also: Callable[[], str] = str,
) -> Manifest:
    """Make the shards that are missing, then the manifest.

    Args:
        also: returns text to append to a progress line, such as the progress of a download.

    Raises:
        ShardError: a unit cannot be read, or a process died; finished shards remain.
    """
    (recipe.folder / UNITS).mkdir(parents=True, exist_ok=True)
    numbers = range(len(recipe.units))
    done = {number: record for number in numbers if (record := finished(recipe, number)) is not None}
    if len(done) < len(numbers):
        # Shards are about to be replaced, so the folder is incomplete until the end.
        (recipe.folder / MANIFEST).unlink(missing_ok=True)
        if done:
            print(f"data: {len(done)} of {len(numbers)} shards already exist")
        left = [number for number in numbers if number not in done]
        done |= _in_processes(recipe, left, workers=min(workers, len(left)), also=also)
    manifest = Manifest(
        dtype=recipe.dtype,
        vocab_size=recipe.vocab_size,
        tokenizer_sha256=recipe.tokenizer_sha256,
        source=recipe.source,
        splits={split: tuple(s for n in numbers if (s := done[n][split])) for split in recipe.splits},
        packed=recipe.pack,
    )
    write_manifest(recipe.folder, manifest)
    _remove_others(recipe.folder, manifest)
    return manifest


def finished(recipe: Recipe, number: int) -> dict[str, Shard | None] | None:
    """Return the shards of a unit if they exist and their inputs are unchanged; otherwise None."""
    file = record_of(recipe.folder, number)
    if not file.is_file():
        return None
    noted = json.loads(file.read_text(encoding="utf-8"))
    if noted["fingerprint"] != recipe.fingerprint(number):
        return None
    shards = {name: Shard(**each) if each else None for name, each in noted["splits"].items()}
    size = array.array(ARRAY_TYPES[recipe.dtype]).itemsize
    for shard in filter(None, shards.values()):
        made = recipe.folder / shard.file
        if not made.is_file() or made.stat().st_size != shard.tokens * size:
            return None
    return shards


def _remove_others(folder: Path, manifest: Manifest) -> None:
    """Remove shards of an earlier, longer corpus, which no manifest lists."""
    kept = {shard.file for shard in manifest.shards()}
    for file in folder.iterdir():
        if re.fullmatch(r"[a-z]+-\d{5}\.bin", file.name) and file.name not in kept:
            file.unlink()


def _in_processes(
    recipe: Recipe,
    numbers: list[int],
    *,
    workers: int,
    also: Callable[[], str],
) -> dict[int, dict[str, Shard | None]]:
    """Tokenize units in `workers` processes, and print the progress from time to time."""
    # Start new processes, since a forked copy would lose the tokenizer's threads.
    spawn = multiprocessing.get_context("spawn")
    read_bytes, stop = spawn.Value("q", 0), spawn.Event()
    total = sum(recipe.units[number].size_bytes for number in numbers)
    started = time.monotonic()
    pool = ProcessPoolExecutor(
        workers, mp_context=spawn, initializer=begin, initargs=(recipe, read_bytes, stop)
    )
    try:
        futures: dict[Future[dict[str, Shard | None]], int] = {pool.submit(make_unit, n): n for n in numbers}
        pending = set(futures)
        while pending:
            ended, pending = wait(pending, timeout=PROGRESS_EVERY_S, return_when=FIRST_EXCEPTION)
            for future in ended:
                future.result()
            seconds = time.monotonic() - started
            ready = len(futures) - len(pending)
            print(_progress(read_bytes.value, total, seconds, ready=ready, units=len(futures)) + also())
        return {futures[future]: future.result() for future in futures}
    except BrokenProcessPool as error:
        raise ShardError(
            "a process that tokenized was killed, perhaps because memory ran out: submit again, finished "
            f"shards are kept; fewer at a time than {workers}: PREPARE_WORKERS={max(1, workers // 2)}."
        ) from error
    finally:
        # After a failure the others would continue for minutes.
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _progress(done: int, total: int, seconds: float, *, ready: int, units: int) -> str:
    rate = done / seconds if seconds else 0.0
    left = f", about {(total - done) / rate / 60:.0f} min left" if rate and done < total else ""
    return (
        f"data: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB read, {ready} of {units} shards, "
        f"{rate / 1e6:.1f} MB/s{left}"
    )
