"""The vocabulary that belongs to the text of bert-trainium: your own, or BERT's for English Wikipedia."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from settings import MACHINE
from trainkit.data import hub
from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.documents import OWN
from trainkit.data.fetch import ensure_file
from trainkit.data.hub_text import HubText
from trainkit.data.shards import sha256_of

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


def find_vocabulary(
    corpus: str, text: HubText | None, *, data: Path, size: int, bucket: DatasetBucket | None
) -> Vocabulary | None:
    """Find the vocabulary: in raw/, in the bucket, else the published one for English Wikipedia.

    Args:
        text: the edition of Wikipedia; None for another corpus.
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
    if text and text.name.endswith(ENGLISH) and size == PUBLISHED_SIZE:
        return Vocabulary(
            file=data / "downloads" / f"{Path(PUBLISHED).name}-{VOCABULARY}",
            sha256=PUBLISHED_SHA256,
            url=hub.url_of("models", PUBLISHED, PUBLISHED_REVISION, VOCABULARY),
        )
    return None
