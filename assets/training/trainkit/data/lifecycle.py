"""The lifecycle that every workload's prepare.py shares: settings, free space, and finding, downloading or
making the shards.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.prepare_tokens import finished
from trainkit.data.shards import MANIFEST, Manifest, ShardError, check_sizes, parse_manifest, read_manifest
from trainkit.data.tokenize_unit import Recipe, Unit
from trainkit.data.verify import files_of, verify
from trainkit.run.files import write_whole
from trainkit.run.settings import PREPARE_WORKERS, number_fault

SHOWN_UNITS = 8


class DataConfig(Protocol):
    """The shards that a run needs."""

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""

    def fits(self, manifest: Manifest) -> bool:
        """Return True if a manifest is of these shards."""


def main(run: Callable[[], None], *errors: type[Exception]) -> None:
    """Run a preparation; end the program with one sentence if it fails.

    Args:
        errors: exceptions whose text is a sentence for users, in addition to ShardError and BucketError.
    """
    sentences: tuple[type[Exception], ...] = (ShardError, BucketError, *errors)
    try:
        run()
    except sentences as error:
        sys.exit(f"prepare.py: {error}")
    except KeyboardInterrupt:
        sys.exit("prepare.py: interrupted; what is finished is kept, submit again.")


def whole_number(name: str, default: int, allowed: range) -> int:
    """Read a whole number from an environment variable.

    Raises:
        ShardError: the value is not a whole number, or not allowed.
    """
    text = os.environ.get(name) or str(default)
    if fault := number_fault(name, text, allowed):
        raise ShardError(fault)
    return int(text)


def worker_count() -> int:
    """Read PREPARE_WORKERS, the number of processes; by default one per core."""
    return whole_number("PREPARE_WORKERS", len(os.sched_getaffinity(0)), PREPARE_WORKERS)


def note_for_training(**note: object) -> None:
    """Write $RUN_DIR/data.json, which train.py reads."""
    write_whole(Path(os.environ["RUN_DIR"]) / "data.json", json.dumps(note) + "\n")


def is_of_text(manifest: Manifest, fingerprint: str | None, *, validation_every: int) -> bool:
    """Return True if shards are made from a text with the same split; without text (None), any text fits."""
    source = manifest.source
    same_text = fingerprint is None or source.get("fingerprint") == fingerprint
    return same_text and source.get("validation_every") == validation_every


def is_done(config: DataConfig) -> bool:
    """Return True if all shards exist; a missing or incomplete shard is made again."""
    if not (config.folder / MANIFEST).is_file():
        return False
    manifest = read_manifest(config.folder)
    try:
        check_sizes(config.folder, manifest)
    except ShardError as error:
        print(f"data: {error}")
        return False
    return config.fits(manifest)


def download(config: DataConfig, bucket: DatasetBucket) -> bool:
    """Download the shards from the bucket; return False if it has others or none."""
    name = config.folder.name
    try:
        text = bucket.text(f"{name}/{MANIFEST}")
        if text is None or not config.fits(parse_manifest(text, where=bucket.url(name))):
            return False
        bucket.download_shards(name, config.folder)
    except BucketError as error:
        print(f"data: not from the bucket: {error}", file=sys.stderr)
        return False
    return True


def have_shards(
    config: DataConfig,
    bucket: DatasetBucket | None,
    make: Callable[[], Manifest],
    *,
    counted: str = "tokens",
    ids_each: int = 1,
) -> None:
    """Find, download or make the shards; verify those that no start has verified yet, and upload them.

    Args:
        bucket: None for shards that no bucket keeps, since a machine's text exists on every machine.
        make: writes the shards if there are none.
        counted: name of the items that the message counts, with `ids_each` ids each.

    Raises:
        ShardError: a shard is corrupt.
    """
    started, folder = time.monotonic(), config.folder
    if not _find_or_download(config, bucket):
        manifest = make()
        counts = ", ".join(f"{split} {manifest.tokens(split) // ids_each:,}" for split in manifest.splits)
        print(
            f"data: {folder} made in {time.monotonic() - started:.1f} s: vocabulary "
            f"{manifest.vocab_size:,}, {counted}: {counts}"
        )
    manifest = read_manifest(folder)
    verify(folder, files_of(manifest))
    if bucket:
        try:
            bucket.upload_shards(folder.name, folder, manifest)
        except BucketError as error:
            print(f"data: not uploaded to the bucket, and training continues: {error}", file=sys.stderr)


def _find_or_download(config: DataConfig, bucket: DatasetBucket | None) -> bool:
    if is_done(config):
        print(f"data: {config.folder} is there")
        return True
    return bucket is not None and download(config, bucket)


def show_units(units: Sequence[Unit], *, workers: int) -> None:
    """Print the first units of a corpus, their size and the number of processes."""
    for unit in units[:SHOWN_UNITS]:
        print(f"data: {unit.size_bytes:>15,} bytes  {unit.name}")
    size = sum(unit.size_bytes for unit in units)
    print(f"data: {size / 1e6:,.1f} MB in {len(units)} parts, {workers} processes")


def is_made_of(file: Path, made_of: str) -> bool:
    """Return True if a file exists and the record beside it has the same `made_of`."""
    note = _made_of_note(file)
    return file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of


def note_made_of(file: Path, made_of: str) -> None:
    """Write the text that is_made_of compares beside a complete file."""
    write_whole(_made_of_note(file), made_of)


def _made_of_note(file: Path) -> Path:
    return file.with_name(f".{file.stem}-of")


def remaining_units(recipe: Recipe) -> list[Unit]:
    """List the units whose shards are still to be made."""
    return [unit for number, unit in enumerate(recipe.units) if finished(recipe, number) is None]


def check_space(folder: Path, wanted_bytes: float) -> None:
    """Refuse a file system that is too small, before an hour of work.

    Tokens take about half the bytes of text, and about the same as compressed text.

    Raises:
        ShardError: the file system has less space than wanted.
    """
    free = shutil.disk_usage(folder).free
    if free < wanted_bytes:
        raise ShardError(
            f"the data needs about {wanted_bytes / 1e9:.1f} GB and {folder} has {free / 1e9:.1f} GB free: "
            "remove old runs there, or take less text."
        )
