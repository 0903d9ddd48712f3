"""Token shards that a workload ordered: whether they are there, and from the bucket."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

from trainkit.data.dataset_bucket import BucketError, DatasetBucket
from trainkit.data.shards import MANIFEST, Manifest, ShardError, check_sizes, parse_manifest, read_manifest


class Order(Protocol):
    """What a workload wants: shards in a folder, and which manifest is of these."""

    @property
    def folder(self) -> Path:
        """Where the shards lie, or will."""

    def fits(self, manifest: Manifest) -> bool:
        """Whether these are the shards that were ordered."""


def is_done(order: Order) -> bool:
    """Whether all shards are there; a missing or torn one is made anew."""
    if not (order.folder / MANIFEST).is_file():
        return False
    manifest = read_manifest(order.folder)
    try:
        check_sizes(order.folder, manifest)
    except ShardError as error:
        print(f"data: {error}")
        return False
    return order.fits(manifest)


def take(order: Order, bucket: DatasetBucket) -> bool:
    """Fetch the shards from the bucket, if it has these."""
    name = order.folder.name
    try:
        text = bucket.text(f"{name}/{MANIFEST}")
        if text is None or not order.fits(parse_manifest(text, where=bucket.url(name))):
            return False
        bucket.download_shards(name, order.folder)
    except BucketError as error:
        print(f"data: not from the bucket: {error}", file=sys.stderr)
        return False
    return True
