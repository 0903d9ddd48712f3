"""CORPUS: the text that bert-trainium trains on, and the vocabulary that belongs to it.

wikipedia: articles without markup, downloaded from the Hugging Face hub; the walk-through's text, which AWS
gave as ready masks. machine: text that exists on any machine. raw: your own files in DATA_DIR/raw.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from settings import CORPORA, MACHINE, WIKIPEDIA
from trainkit.data import hub, machine_text
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.documents import OWN, PATTERNS, fingerprint_of, own_files, pieces_of
from trainkit.data.fetch import ensure_file
from trainkit.data.hub_text import WIKIPEDIA_EDITION, wikipedia_corpus, wikipedia_text
from trainkit.data.shards import ShardError, sha256_of
from trainkit.data.tokenize_unit import Unit

ENGLISH = (".en", ".simple")
VOCABULARY = "vocab.txt"
# The vocabulary of the walk-through's text, which bert-base-uncased and bert-large-uncased share.
PUBLISHED = "google-bert/bert-base-uncased"
PUBLISHED_REVISION = "86b5e0934494bd15c9632b12f734a8a67f723594"
PUBLISHED_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
PUBLISHED_SIZE = 30522


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A vocab.txt: one token per line; the line's number is the token's id."""

    file: Path
    sha256: str
    url: str | None = None
    """Address of a published vocabulary."""

    def ensure(self) -> Path:
        """Download the file if it is published and missing.

        Raises:
            FetchError: it cannot be downloaded, or is not the published file.
        """
        if self.url:
            ensure_file(self.file, url=self.url, key=VOCABULARY, bucket=None, sha256=self.sha256)
        return self.file


def choose(wanted: str, *, data: Path, edition: str = WIKIPEDIA_EDITION) -> str:
    """Return the corpus: the wanted one, else your own files if there are any, else an edition of Wikipedia.

    Raises:
        ShardError: there is no such corpus, or no such edition.
    """
    if wanted and wanted not in CORPORA:
        raise ShardError(f'CORPUS is "{wanted}"; allowed: {", ".join(CORPORA)}.')
    published = wikipedia_corpus(edition)
    chosen = wanted or (OWN if own_files(data, without={VOCABULARY}) else WIKIPEDIA)
    return published if chosen == WIKIPEDIA else chosen


def fingerprint(corpus: str, *, data: Path) -> str | None:
    """Return a string that changes with the corpus; None without text. Reads no big file."""
    if text := wikipedia_text(corpus):
        return text.fingerprint
    if corpus == MACHINE:
        return machine_text.fingerprint()
    return fingerprint_of(own_files(data, without={VOCABULARY}))


def units(corpus: str, *, data: Path) -> tuple[Unit, ...]:
    """List the units of a corpus in a fixed order.

    Raises:
        ShardError: there is no text, or the hub does not answer.
    """
    if text := wikipedia_text(corpus):
        return text.units(data)
    own = corpus == OWN
    files = own_files(data, without={VOCABULARY}) if own else machine_text.gather(data / MACHINE)
    found = tuple(piece for file in files for piece in pieces_of(file))
    if not found:
        raise ShardError(
            f"there is no text: put {PATTERNS} into {data / OWN}, or take another corpus: "
            f"CORPUS={WIKIPEDIA}, or CORPUS={MACHINE}, the little that exists on this machine, to see it run."
        )
    return found


def vocabulary(corpus: str, *, data: Path, size: int, bucket: DatasetBucket | None) -> Vocabulary | None:
    """Find the vocabulary: in raw/, in the bucket, else the published one for English Wikipedia.

    Args:
        size: the number of tokens that the model has.

    Returns:
        None if a vocabulary has to be trained on the text.
    """
    if corpus == MACHINE:
        return None
    file = data / OWN / VOCABULARY
    if not file.is_file() and bucket:
        try:
            if bucket.head(VOCABULARY):
                bucket.download(VOCABULARY, file)
        except BucketError as error:
            print(f"data: no {VOCABULARY} from the bucket: {error}", file=sys.stderr)
    if file.is_file():
        return Vocabulary(file=file, sha256=sha256_of(file))
    if wikipedia_text(corpus) and corpus.endswith(ENGLISH) and size == PUBLISHED_SIZE:
        return Vocabulary(
            file=data / "downloads" / f"{Path(PUBLISHED).name}-{VOCABULARY}",
            sha256=PUBLISHED_SHA256,
            url=hub.url_of("models", PUBLISHED, PUBLISHED_REVISION, VOCABULARY),
        )
    return None
