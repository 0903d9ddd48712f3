"""Joins shards, and writes the same documents by Megatron's builder; prints "equal" for equal files."""

# mypy: disable-error-code="import-not-found"
import sys
from pathlib import Path

import numpy as np
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from prepare import SMALL_VOCABULARY
from trainkit.data import indexed
from trainkit.data.shards import Manifest, Shard, dtype_of

END, TOKENS = 0, 5000


def main(folder: Path) -> None:
    """Compare vocabularies of either size of Megatron's ids."""
    for vocabulary in (4096, SMALL_VOCABULARY - 1, SMALL_VOCABULARY, 70_000):
        shards = folder / str(vocabulary)
        made, kind = shards / "megatron", dtype_of(vocabulary)
        made.mkdir(parents=True)
        draw = np.random.default_rng(vocabulary)
        builder = IndexedDatasetBuilder(str(shards / "train.bin"), dtype=DType.optimal_dtype(vocabulary))
        names, joined = [], []
        for number in range(3):
            tokens = draw.integers(1, vocabulary, TOKENS).astype(kind)
            tokens[draw.integers(0, TOKENS, 40)] = END
            # Empty documents, and one that ends in the next shard, or not at all.
            tokens[:2], tokens[-1] = END, number
            names.append(Shard(f"train-{number}.bin", TOKENS, ""))
            tokens.tofile(shards / names[-1].file)
            joined.append(tokens)
        tokens = np.concatenate(joined)
        for document in np.split(tokens, np.flatnonzero(tokens == END) + 1):
            if len(document):
                builder.add_document(document, [len(document)])
        builder.finalize(str(shards / "train.idx"))
        splits = {"train": tuple(names), "val": ()}
        manifest = Manifest(dtype=kind, vocab_size=vocabulary, tokenizer_sha256="", source={}, splits=splits)
        dtype = "uint16" if vocabulary < SMALL_VOCABULARY else "int32"
        indexed._join(manifest, "train", made / "train", end=END, dtype=dtype, documents=True)
        for suffix in (".bin", ".idx"):
            name = f"train{suffix}"
            assert (made / name).read_bytes() == (shards / name).read_bytes(), f"{vocabulary}, {name}"
    print("equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
