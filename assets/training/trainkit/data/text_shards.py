"""Token shards of your own text or of text that exists on any machine; they are found, downloaded or made."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from trainkit.data import bpe, machine_text
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import (
    OWN,
    PATTERNS,
    documents_of,
    fingerprint_of,
    pieces_of,
    sample,
    text_files,
)
from trainkit.data.lifecycle import (
    check_space,
    have_shards,
    is_made_of,
    is_of_text,
    note_made_of,
    remaining_units,
    show_units,
)
from trainkit.data.prepare_tokens import prepare
from trainkit.data.shards import Manifest, ShardError, sha256_of
from trainkit.data.tokenize_unit import Recipe, Unit
from trainkit.run.files import write_whole

MACHINE = "machine"
"""Name of the text that exists on any machine."""
TOKENIZER = "tokenizer.json"
# Files beside tokenizer.json with the names of special tokens and the template of chats.
TOKENIZER_CONFIG = "tokenizer_config.json"


def folder_of(name: str, *, data: Path) -> Path:
    """Return the folder of a text: of that name beside DATA_DIR, or raw/ in it; of raw, DATA_DIR/raw."""
    folder = data / OWN if name == OWN else data.parent / name
    return folder / OWN if (folder / OWN).is_dir() else folder


@dataclass(frozen=True, kw_only=True)
class TextShards:
    """The shards of one text in DATA_DIR: its tokenizer and its split."""

    data: Path
    """DATA_DIR, the workload's folder among the datasets."""
    name: str
    """raw (DATA_DIR/raw), machine, or a folder beside DATA_DIR."""
    tokenizer: Path | None
    """The user's tokenizer.json; None to train one on the text."""
    vocab_size: int
    validation_every: int
    workers: int

    @property
    def folder(self) -> Path:
        """The folder of the shards, which may not exist yet."""
        end = f"bpe-{sha256_of(self.tokenizer)[:8]}" if self.tokenizer else f"vocab-{self.vocab_size}"
        return self.data / f"{self.name}-{end}"

    @property
    def texts(self) -> Path:
        """The folder of the text."""
        return folder_of(self.name, data=self.data)

    @property
    def files(self) -> list[Path]:
        """The files of text, by name."""
        return machine_text.gather(self.data / MACHINE) if self.name == MACHINE else text_files(self.texts)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the text; None if there is none."""
        return machine_text.fingerprint() if self.name == MACHINE else fingerprint_of(text_files(self.texts))

    def fits(self, manifest: Manifest) -> bool:
        """Return True if shards are made of this text, with this tokenizer."""
        return is_of_text(manifest, self.fingerprint, validation_every=self.validation_every) and (
            self.tokenizer is None or manifest.tokenizer_sha256 == sha256_of(self.tokenizer)
        )

    def ensure(self, bucket: DatasetBucket | None) -> Path:
        """Find, download or make the shards, verify and upload them; return their folder.

        Raises:
            ShardError: there is no text, it cannot be read, or a shard is corrupt.
        """
        have_shards(self, None if self.name == MACHINE else bucket, self._make)
        return self.folder

    def _make(self) -> Manifest:
        units = tuple(piece for file in self.files for piece in pieces_of(file))
        if not units:
            raise ShardError(
                f"there is no text: put {PATTERNS} into {self.texts}, or train on the text of this machine, "
                f"{MACHINE}."
            )
        show_units(units, workers=self.workers)
        self.folder.mkdir(parents=True, exist_ok=True)
        tokenizer = bpe.Bpe((self._tokenizer_of(units),))
        recipe = Recipe(
            folder=self.folder,
            units=units,
            read=documents_of,
            encoder=tokenizer,
            vocab_size=tokenizer.vocab_size,
            tokenizer_sha256=tokenizer.sha256,
            source={
                "corpus": self.name,
                "fingerprint": self.fingerprint,
                "validation_every": self.validation_every,
                "parts": [{"name": unit.name, "size_bytes": unit.size_bytes} for unit in units],
            },
            validation_every=self.validation_every,
        )
        check_space(self.folder, sum(unit.size_bytes for unit in remaining_units(recipe)))
        return prepare(recipe, workers=self.workers)

    def _tokenizer_of(self, units: tuple[Unit, ...]) -> Path:
        """Put tokenizer.json beside the shards: the user's, or one trained once for a text."""
        file = self.folder / TOKENIZER
        if self.tokenizer:
            for given in (self.tokenizer, self.tokenizer.with_name(TOKENIZER_CONFIG)):
                if given.is_file():
                    shutil.copyfile(given, self.folder / given.name)
            return file
        made_of = f"{self.fingerprint} {self.vocab_size}\n"
        if not is_made_of(file, made_of):
            bpe.train(bpe.Bpe((file,)), sample(units), vocab_size=self.vocab_size)
            # torchtitan and transformers read the end of text from it.
            config = {"eos_token": bpe.END_OF_TEXT, "tokenizer_class": "PreTrainedTokenizerFast"}
            write_whole(self.folder / TOKENIZER_CONFIG, json.dumps(config) + "\n")
            note_made_of(file, made_of)
        return file
