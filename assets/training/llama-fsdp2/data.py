"""The token shards of a run, which are checked before training begins. Needs no package."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from settings import Settings
from sizes import Shape
from trainkit.data.shards import SPLITS, Manifest, ShardError, check_sizes, check_sums, read_manifest
from trainkit.run.run import Run, data_note, die


@dataclass(frozen=True, kw_only=True)
class Data:
    """A folder of shards, with its manifest."""

    folder: Path
    manifest: Manifest

    def sum(self) -> str:
        """Return a sum of all shards' sums: data sets with the same sum have the same content."""
        return hashlib.sha256("".join(each.sha256 for each in self.manifest.shards()).encode()).hexdigest()


def open_data(run: Run, settings: Settings, shape: Shape) -> Data:
    """Open the shards that prepare.py noted for this run; die unless they are whole and fit the model."""
    folder = Path(data_note(run)["shards"])
    try:
        manifest = read_manifest(folder)
        check_sizes(folder, manifest)
    except ShardError as error:
        die(str(error))
    if manifest.vocab_size > shape.vocab_size:
        die(
            f"{folder} has a vocabulary of {manifest.vocab_size} tokens and the model one of "
            f"{shape.vocab_size}: give LLAMA_SIZE and VOCAB_SIZE as variables, which prepare.sh reads, too, "
            "and not as arguments."
        )
    for split in SPLITS:
        if manifest.tokens(split) <= settings.llama_context:
            die(
                f"{folder} has {manifest.tokens(split)} tokens in {split}, and LLAMA_CONTEXT "
                f"({settings.llama_context}) needs more: take more text, or lower it."
            )
    return Data(folder=folder, manifest=manifest)


def verify(run: Run, settings: Settings, data: Data) -> None:
    """Read all shards once, a share on each node; die if one is corrupt."""
    if settings.verify_data == "no" or run.local_rank:
        return
    nodes, node = int(os.environ.get("NNODES", "1")), run.rank // int(os.environ.get("NPROC_PER_NODE", "1"))
    try:
        check_sums(data.folder, data.manifest, part=node, parts=nodes)
    except ShardError as error:
        die(str(error))
