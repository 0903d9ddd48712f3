"""Token shards of one text, published, your own or any machine's: they are found, downloaded or made."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trainkit.data import bpe, machine_text
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.documents import (
    COMPRESSED,
    OWN,
    SUFFIXES,
    all_files,
    fingerprint_of,
    sample,
    text_files,
    units_of,
)
from trainkit.data.hub_text import HubText, fetched_documents, space_of
from trainkit.data.lifecycle import LESS, check_space, prepare_workers
from trainkit.data.prepare_tokens import finished, prepare
from trainkit.data.shards import MANIFEST, Manifest, ShardError, parse_manifest, read_manifest, sha256_of
from trainkit.data.tokenize_unit import Encoder, ReadUnit, Recipe, Unit
from trainkit.data.verify import check_size, files_of, verify
from trainkit.run.files import write_whole

MACHINE = "machine"
"""Name of the text that exists on any machine."""
TOKENIZER = "tokenizer.json"
# Files beside tokenizer.json with the names of special tokens and the template of chats.
TOKENIZER_CONFIG = "tokenizer_config.json"
SHOWN_UNITS = 8


def folder_of(name: str, *, data: Path) -> Path:
    """Return the folder of a text: of that name beside DATA_DIR, or raw/ in it; of raw, DATA_DIR/raw."""
    folder = data / OWN if name == OWN else data.parent / name
    return folder / OWN if (folder / OWN).is_dir() else folder


@dataclass(frozen=True, kw_only=True)
class TextShards:
    """The shards of one text in DATA_DIR: its tokenizer and its split.

    A workload with other tokens extends it by its own `folder` and `recipe`.
    """

    data: Path
    """DATA_DIR, the workload's folder among the datasets."""
    name: str
    """raw (DATA_DIR/raw), machine, a folder beside DATA_DIR, or the name of a published text."""
    published: HubText | None = None
    """The text of that name on the hub; None for a text of files."""
    tokenizer: Path | None = None
    """An existing tokenizer.json; None to train one on the text."""
    vocab_size: int
    validation_every: int
    suffixes: ClassVar[Sequence[str]] = SUFFIXES
    """Ends of the names of files that are read."""
    not_text: ClassVar[frozenset[str]] = frozenset()
    """Names of files and subfolders of raw/ that are no text."""
    shard_bytes_a_text_byte: ClassVar[float] = 1.0
    other_text: ClassVar[str] = f"DATA={MACHINE}"
    """Settings that take another text, for the refusal of a missing one."""

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        end = f"bpe-{sha256_of(self.tokenizer)[:8]}" if self.tokenizer else f"vocab-{self.vocab_size}"
        return self.data / f"{self.name}-{end}"

    @property
    def texts(self) -> Path:
        """The folder of the text."""
        if self.name == MACHINE:
            return self.data / MACHINE
        return folder_of(self.name, data=self.data)

    @property
    def files(self) -> list[Path]:
        """The files of a text that is not published, by name."""
        if self.name == MACHINE:
            return machine_text.gather(self.texts)
        return text_files(self.texts, suffixes=self.suffixes, without=self.not_text)

    @property
    def fingerprint(self) -> str | None:
        """A string that changes with the text; None if there is none. Reads no big file."""
        if self.published:
            return self.published.fingerprint
        return machine_text.fingerprint() if self.name == MACHINE else fingerprint_of(self.files, self.texts)

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, with this tokenizer; without text, of any text."""
        found = manifest.source
        return (
            self._is_of_text(manifest)
            and found.get("validation_every") == self.validation_every
            and (self.tokenizer is None or manifest.tokenizer_sha256 == sha256_of(self.tokenizer))
        )

    def _is_of_text(self, manifest: Manifest) -> bool:
        noted = manifest.source.get("fingerprint")
        if self.fingerprint in {None, noted}:
            return True
        # Versions that counted no documents read neither subfolders nor compressed files.
        read = [file for file in self.files if file.parent == self.texts and file.suffix in SUFFIXES]
        return not manifest.longest and fingerprint_of(read, self.texts) == noted

    def ensure(self, bucket: DatasetBucket | None) -> Path:
        """Find, download or make the shards, and return their folder.

        Those that no start has verified yet are verified. The bucket keeps all but those of text that every
        machine has.

        Raises:
            ShardError: there is no text, it cannot be read, or a shard is corrupt.
        """
        started, folder = time.monotonic(), self.folder
        bucket = None if self.name == MACHINE else bucket
        if self._is_done():
            manifest = read_manifest(folder)
            print(f"data: {folder} is there: {self.counts(manifest)}")
            if not manifest.longest:
                print(
                    "data: it is of an earlier version, which cut text files into documents of 4,000 "
                    "characters, and read no subfolders and no compressed files: remove it to have it made "
                    "again of all of them and of whole documents"
                )
        elif not (bucket and any(map(self._download, bucket.places))):
            manifest = self.make()
            print(
                f"data: {folder} made in {time.monotonic() - started:.1f} s: vocabulary "
                f"{manifest.vocab_size:,}, {self.counts(manifest)}"
            )
        manifest = read_manifest(folder)
        verify(folder, files_of(manifest))
        if bucket:
            try:
                bucket.upload_shards(folder.name, folder, manifest)
            except BucketError as error:
                print(f"data: not uploaded to the bucket, and training continues: {error}", file=sys.stderr)
        return folder

    def counts(
        self, manifest: Manifest, *, counted: str = "tokens", ids_each: int = 1, called: str = "documents"
    ) -> str:
        """Return the number of items, which have `ids_each` ids, and documents of each split."""
        found = f"{counted}: " + ", ".join(
            f"{split} {manifest.text_tokens(split) // ids_each:,}"
            + (f" ({manifest.documents(split):,} {called})" if manifest.longest else "")
            for split in manifest.splits
        )
        return found + (f"; the longest has {manifest.longest // ids_each:,}" if manifest.longest else "")

    def note(self) -> dict[str, Any]:
        """Return what the report of a run has of the data, for note_for_training."""
        manifest = read_manifest(self.folder)
        return {
            "described": [
                f"{self.published.title if self.published else self.name}: {self.counts(manifest)}"
            ],
            "tokens": manifest.tokens("train"),
        }

    def _is_done(self) -> bool:
        """Return True if all shards exist; a missing or incomplete shard is made again."""
        if not (self.folder / MANIFEST).is_file():
            return False
        manifest = read_manifest(self.folder)
        try:
            for file in files_of(manifest):
                check_size(self.folder, file, mend="it is made again")
        except ShardError as error:
            print(f"data: {error}")
            return False
        return self.fits(manifest)

    def _download(self, bucket: DatasetBucket) -> bool:
        """Download the shards from the bucket; return False if it has others or none."""
        name = self.folder.name
        try:
            text = bucket.text(f"{name}/{MANIFEST}")
            if text is None or not self.fits(parse_manifest(text, where=bucket.url(name))):
                return False
            bucket.download_shards(name, self.folder)
        except BucketError as error:
            print(f"data: not from the bucket: {error}", file=sys.stderr)
            return False
        return True

    def make(self) -> Manifest:
        """Read the text and write the shards."""
        units, workers = self.units(), prepare_workers()
        for unit in units[:SHOWN_UNITS]:
            print(f"data: {unit.size_bytes:>15,} bytes  {unit.name}")
        size = sum(unit.size_bytes for unit in units)
        print(f"data: {size / 1e6:,.1f} MB in {len(units)} parts, {workers} processes")
        self.folder.mkdir(parents=True, exist_ok=True)
        recipe = self.recipe(units)
        remaining = [unit for number, unit in enumerate(units) if finished(recipe, number) is None]
        check_space(
            self.folder,
            sum(space_of(each, shards=self.shard_bytes_a_text_byte) for each in remaining),
            less=self.published.less if self.published else LESS,
        )
        return prepare(
            recipe,
            workers=workers,
            also=lambda: self.published.downloaded(self.data) if self.published else "",
        )

    def units(self) -> tuple[Unit, ...]:
        """List the units of the text in a fixed order.

        Raises:
            ShardError: there is no text, or the hub does not answer.
        """
        if self.published:
            return self.published.units(self.data)
        files = self.files
        found = units_of(files, self.texts, validation_every=self.validation_every)
        others = [] if self.name == MACHINE else sorted({*all_files(self.texts)} - {*files})
        others = [each for each in others if each.name not in self.not_text]
        if others:
            names = [each.relative_to(self.texts).as_posix() for each in others[:SHOWN_UNITS]]
            more = f" and {len(others) - len(names):,} more" if len(others) > len(names) else ""
            print(f"data: not read: {', '.join(names)}{more} (what is read: {self._patterns})")
        if not found:
            raise ShardError(
                f"there is no text: put {self._patterns} into {self.texts}, or take another one: "
                f"{self.other_text}."
            )
        return found

    @property
    def _patterns(self) -> str:
        patterns = [f"*{suffix}" for suffix in (*self.suffixes, *(f".json{end}" for end in COMPRESSED))]
        return f"{', '.join(patterns[:-1])} or {patterns[-1]}"

    def recipe(self, units: tuple[Unit, ...]) -> Recipe:
        """Return the inputs of the shards, with a tokenizer that exists or is trained."""
        tokenizer = bpe.Bpe((self._tokenizer_of(units),))
        parts = [
            {"name": unit.name, "size_bytes": unit.size_bytes, "fingerprint": unit.fingerprint}
            for unit in units
        ]
        return self.recipe_with(
            tokenizer,
            units,
            vocab_size=tokenizer.vocab_size,
            tokenizer_sha256=tokenizer.sha256,
            source={"parts": parts},
        )

    def recipe_with(
        self,
        encoder: Encoder,
        units: tuple[Unit, ...],
        *,
        vocab_size: int,
        tokenizer_sha256: str,
        source: dict[str, object],
        layout: str = "",
        read: ReadUnit = fetched_documents,
        pack: int = 0,
        padding: int = 0,
        group: int = 1,
    ) -> Recipe:
        """Return the inputs of shards that an encoder makes; `source` is what the manifest has of it."""
        of_text = {
            "corpus": self.name,
            "fingerprint": self.fingerprint,
            "validation_every": self.validation_every,
        }
        return Recipe(
            folder=self.folder,
            units=units,
            read=read,
            encoder=encoder,
            vocab_size=vocab_size,
            tokenizer_sha256=tokenizer_sha256,
            source=of_text | source,
            validation_every=self.validation_every,
            layout=layout,
            pack=pack,
            padding=padding,
            group=group,
        )

    def train_once(self, file: Path, train: Callable[[], object]) -> None:
        """Train a tokenizer on the text, unless `file` is one with the note that it was trained on it."""
        note, made_of = file.with_name(f".{file.stem}-of"), f"{self.fingerprint} {self.vocab_size}\n"
        if not (file.is_file() and note.is_file() and note.read_text(encoding="utf-8") == made_of):
            train()
            write_whole(note, made_of)

    def _tokenizer_of(self, units: tuple[Unit, ...]) -> Path:
        """Put tokenizer.json beside the shards: the existing one, or one trained once for a text."""
        file = self.folder / TOKENIZER
        if self.tokenizer:
            for given in (self.tokenizer, self.tokenizer.with_name(TOKENIZER_CONFIG)):
                if given.is_file():
                    shutil.copyfile(given, self.folder / given.name)
            return file

        def train() -> None:
            texts = sample(units, read=fetched_documents)
            bpe.train(bpe.Bpe((file,)), texts, vocab_size=self.vocab_size)
            # torchtitan and transformers read the end of text from it.
            config = {"eos_token": bpe.END_OF_TEXT, "tokenizer_class": "PreTrainedTokenizerFast"}
            write_whole(self.folder / TOKENIZER_CONFIG, json.dumps(config) + "\n")

        self.train_once(file, train)
        return file
