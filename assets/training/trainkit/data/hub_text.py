"""Texts of the Hugging Face hub: files that are downloaded when they are needed, kept, and read.

Articles of Wikipedia without markup are Wikimedia's own extraction of its dumps. Of other data sets,
ORGANISATION/NAME[/CONFIGURATION][@REVISION], the hub's package `datasets` finds the files of each split. Each
is prepared once, at the commit of its first preparation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainkit.data import hub
from trainkit.data.documents import (
    COMPRESSED,
    OWN,
    TEXT_BYTES_A_COMPRESSED_BYTE,
    TEXT_BYTES_A_PARQUET_BYTE,
    Bundle,
    Piece,
    cuts_of,
    documents_of,
    kind_of,
)
from trainkit.data.fetch import FetchError, size_of
from trainkit.data.lifecycle import LESS
from trainkit.data.rows import TEXTS, Rows
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit

WIKIPEDIA = "wikipedia"
WIKIPEDIA_EDITION = "20231101.en"
# 41 files and 6.4 million articles for English.
REPOSITORY, REVISION = "wikimedia/wikipedia", "b04c8d1ceb2f5cd4588862100d08de323dccfbaa"
WORD = r"\w[\w.-]*"
HUB_NAME = re.compile(
    rf"(?P<repository>{WORD}/{WORD})(?:/(?P<configuration>{WORD}))?(?:@(?P<revision>{WORD}))?", re.ASCII
)
HELD_BACK = ("validation", "test")
"""Splits that are read for validation, the first that there is."""
SHOWN, SHOWN_CHARACTERS = 5, 300


@dataclass(frozen=True, kw_only=True)
class Download(Unit):
    """A file of the hub, or a range of its bytes."""

    remote: hub.HubFile
    file: Path
    start: int = 0
    end: int | None = None


def space_of(unit: Unit, *, shards: float = 1.0) -> float:
    """Return the bytes that a unit takes: its shards, and its part of a file that is still to be downloaded.

    Args:
        shards: bytes of shards for each byte of text.
    """
    if not isinstance(unit, Download):
        return unit.size_bytes * shards
    file = 0 if unit.file.is_file() else (unit.end or unit.remote.size_bytes) - unit.start
    scale = TEXT_BYTES_A_PARQUET_BYTE if unit.file.suffix == ".parquet" else 1
    return file + unit.size_bytes * scale * shards


@cache
def fetch_once(remote: hub.HubFile, file: Path) -> None:
    """Download a file unless it exists, and compare its content, once for all processes that read parts."""
    noted = file.with_name(f".{file.name}.checked")
    if noted.is_file() and file.is_file() and noted.read_text(encoding="utf-8") == _state(remote, file):
        return
    hub.fetch(remote, file)
    with suppress(PermissionError):  # another user's file
        noted.write_text(_state(remote, file), encoding="utf-8")


def _state(remote: hub.HubFile, file: Path) -> str:
    found = file.stat()
    return f"{remote.sha256 or remote.git_sha1} {found.st_size} {found.st_mtime_ns}\n"


def fetched_documents(unit: Download | Piece | Bundle, *, rows: Rows = TEXTS) -> Iterator[tuple[str, int]]:
    """Read the documents of a unit, after its download if it is a file of the hub."""
    if not isinstance(unit, Download):
        yield from documents_of(unit, rows=rows)
        return
    fetch_once(unit.remote, unit.file)
    kept = Piece(
        name=unit.name,
        size_bytes=unit.size_bytes,
        fingerprint=unit.fingerprint,
        file=unit.file,
        start=unit.start,
        end=unit.end,
        last=unit.remote.size_bytes if unit.end else None,
    )
    try:
        yield from documents_of(kept, rows=rows)
    except ShardError as error:
        raise ShardError(f"{error} Or take a corrected copy as your own text.") from error


@dataclass(frozen=True, kw_only=True)
class HubText:
    """A text at one revision, as the parquet files of one folder with a column "text"."""

    title: str
    name: str
    """Name of the folder of its files, below DATA_DIR/downloads."""
    repository: str
    revision: str
    folder: str

    @property
    def less(self) -> str:
        """The advice for a file system with too little space."""
        return LESS

    @property
    def fingerprint(self) -> str:
        """The revision of the repository."""
        return f"{self.repository}@{self.revision}"

    def kept_in(self, data: Path) -> Path:
        """Return the folder in which its files are kept."""
        return data / "downloads" / self.name

    def units(self, data: Path) -> tuple[Download, ...]:
        """List its files on the hub. Raises ShardError: the hub does not answer, or has no such file."""
        try:
            listed = hub.list_files("datasets", self.repository, self.revision, folder=self.folder)
        except FetchError as error:
            raise self._missing(error.reason, data) from error
        found = [
            each for each in sorted(listed, key=lambda each: each.path) if each.path.endswith(".parquet")
        ]
        if not found:
            raise self._missing(f"{self.repository} has no parquet file in {self.folder}", data)
        return self.downloads(((each, "") for each in found), data)

    def downloads(self, files: Iterable[tuple[hub.HubFile, str]], data: Path) -> tuple[Download, ...]:
        """Return the units of files: the first parts of all, then the second ones, so that many are fetched.

        Args:
            files: each with the split of all of its documents, "" to divide them.
        """
        units = list[Download]()
        for remote, split in files:
            file = self.kept_in(data) / Path(remote.path).relative_to(self.folder)
            cuts = cuts_of(file.suffix, 0, remote.size_bytes)
            scale = TEXT_BYTES_A_COMPRESSED_BYTE if file.suffix in COMPRESSED else 1
            is_one = len(cuts) == 1
            units += [
                Download(
                    name=remote.path if is_one else f"{remote.path}, part {number}",
                    size_bytes=(end - start) * scale,
                    fingerprint=(remote.sha256 or remote.git_sha1) + ("" if is_one else f" {start} {end}"),
                    split=split,
                    source=remote.path,
                    remote=remote,
                    file=file,
                    start=start,
                    end=None if is_one else end,
                )
                for number, (start, end) in enumerate(cuts, start=1)
            ]
        return tuple(sorted(units, key=lambda unit: unit.start))

    def downloaded(self, data: Path) -> str:
        """Return the progress of the download, to append to a progress line."""
        # A finished download gets another name meanwhile.
        size = sum(map(size_of, self.kept_in(data).rglob("*.*")))
        return f"; {size / 1e6:,.1f} MB downloaded"

    def _missing(self, reason: str, data: Path) -> ShardError:
        return ShardError(
            f"{self.title} cannot be had: {reason}. Have a way there (NAT, or a mirror by HF_ENDPOINT), "
            f"put your own text into {data / OWN} (CORPUS=raw), or train on this machine's: CORPUS=machine."
        )


def wikipedia() -> HubText:
    """Return the edition of Wikipedia that WIKIPEDIA_EDITION names.

    Raises:
        ShardError: it is not a date and a language.
    """
    edition = os.environ.get("WIKIPEDIA_EDITION") or WIKIPEDIA_EDITION
    if not re.fullmatch(r"\d{8}\.[a-z-]+", edition):
        raise ShardError(
            f'WIKIPEDIA_EDITION is "{edition}": give a date and a language of {REPOSITORY} on the Hugging '
            f"Face hub, such as {WIKIPEDIA_EDITION} or 20231101.simple."
        )
    name = f"{WIKIPEDIA}-{edition}"
    return HubText(title="Wikipedia", name=name, repository=REPOSITORY, revision=REVISION, folder=edition)


@dataclass(frozen=True, kw_only=True)
class HubDataset(HubText):
    """A data set of the hub, of which the split `train` is read, and one of HELD_BACK for validation.

    Without one of those, documents of `train` are for validation, as in a folder.
    """

    folder: str = ""
    configuration: str | None
    suffixes: Collection[str]
    """Kinds of files that are read, as documents.kind_of returns them."""
    task: str = ""
    """A task whose own splits precede others: train_sft, test_prefs."""

    @classmethod
    def named(cls, name: str, *, suffixes: Collection[str], task: str = "") -> HubDataset:
        """Return the data set of a name that HUB_NAME matches."""
        found = HUB_NAME.fullmatch(name)
        assert found
        return cls(
            title=name,
            name=f"hub--{name.replace('/', '--')}",
            repository=found["repository"],
            revision=found["revision"] or "main",
            configuration=found["configuration"],
            suffixes=suffixes,
            task=task,
        )

    @property
    def less(self) -> str:
        """The advice for a file system with too little space."""
        return f"stream it (DATA=hf:{self.title})"

    @property
    def fingerprint(self) -> str:
        """The name alone: shards remain when the repository gets another commit."""
        return self.title

    def units(self, data: Path) -> tuple[Download, ...]:
        """List its files on the hub.

        Raises:
            ShardError: the hub does not answer, has no such data set, or one that cannot be read.
        """
        try:
            commit = hub.commit_of("datasets", self.repository, self.revision)
            files = {file.path: file for file in hub.all_files("datasets", self.repository, commit)}
        except FetchError as error:
            raise self._missing(error.reason, data) from error
        splits = self._splits(commit, data)
        train, val = (self._chosen(splits, names) for names in (("train",), HELD_BACK))
        if not train:
            raise ShardError(
                f"{self.title} has the splits {', '.join(splits)}, and none is train: download what you want "
                "into a folder of datasets/, and name that."
            )
        chosen = {train: "train" if val else "", **({val: "val"} if val else {})}
        print(f"data: {self.title} is {self.repository} at {commit}, splits {', '.join(chosen)}")
        paths = [(path, called) for split, called in chosen.items() for path in sorted(splits[split])]
        others = [path for path, _ in paths if path not in files or kind_of(Path(path)) not in self.suffixes]
        if others:
            raise ShardError(
                f"{self.title} has {', '.join(others[:SHOWN])}, and what is read is "
                f"{', '.join(f'*{each}' for each in self.suffixes)}: convert it into a folder of datasets/."
            )
        return self.downloads(((files[path], called) for path, called in paths), data)

    def _chosen(self, splits: Collection[str], names: Collection[str]) -> str:
        """Return the first split of some names, of the task before others; "" if there is none."""
        wanted = [f"{name}{end}" for end in (f"_{self.task}", "") for name in names]
        return next((name for name in wanted if name in splits), "")

    def _splits(self, commit: str, data: Path) -> dict[str, list[str]]:
        """Return the paths of the files of each split at a commit."""
        from datasets import load_dataset_builder  # noqa: PLC0415 (seconds; and not every environment has it)

        try:
            found = load_dataset_builder(self.repository, self.configuration, revision=commit)
        except Exception as error:  # of the hub, the network or the data set's own format
            raise self._missing(" ".join(str(error).split())[:SHOWN_CHARACTERS], data) from error
        root = f"hf://datasets/{self.repository}@{commit}/"
        return {
            str(split): [url.removeprefix(root) for url in urls]
            for split, urls in (found.config.data_files or {}).items()
        }

    def _missing(self, why: str, data: Path) -> ShardError:  # noqa: ARG002
        return ShardError(
            f"DATA={self.title} cannot be read ({why}): compare its name and CONFIGURATION, give HF_TOKEN if "
            "it is gated, and give the nodes access to the hub (NAT, or HF_ENDPOINT)."
        )
