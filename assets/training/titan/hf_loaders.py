"""torchtitan's own loaders of Hugging Face data sets: streams of the hub (DATA=hf:...) and chats.

They tokenize on the way, pack documents, mask their borders, and keep each data-parallel rank's place in the
checkpoint, which therefore loads on as many ranks as wrote it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from datasets import Dataset, load_dataset
from texts import address
from torchtitan.components.tokenizer import HuggingFaceTokenizer
from torchtitan.hf_datasets import DatasetConfig
from torchtitan.hf_datasets.text_datasets import (
    DATASETS,
    ChatDataset,
    ChatDataSource,
    HFDataSource,
    InterleavedChatDataLoader,
    InterleavedHuggingFaceTextDataLoader,
)
from trainkit.data.chats import Messages, TokensOf
from trainkit.data.mixture import Part
from trainkit.data.shards import ShardError
from trainkit.run.run import reason


def streams(
    parts: Sequence[Part], *, splits: Sequence[str], seed: int
) -> InterleavedHuggingFaceTextDataLoader.Config:
    """Return the loader's config of a split of each data set, by its column "text"."""
    sources = []
    for part, split in zip(parts, splits, strict=True):
        path, configuration = address(part.name)
        # torchtitan looks names up in small letters.
        key = f"{part.name} {split}".lower()
        load = partial(load_dataset, name=configuration, split=split, streaming=True)
        DATASETS[key] = DatasetConfig(path=path, loader=load, sample_processor=itemgetter("text"))
        sources.append(HFDataSource(dataset=key, weight=part.weight))
    return InterleavedHuggingFaceTextDataLoader.Config(sources=sources, seed=seed)


def chats(
    parts: Sequence[Part], *, folders: Sequence[str], split: str, seed: int
) -> InterleavedChatDataLoader.Config:
    """Return the loader's config of one split of prepared chats."""
    sources = [
        ChatDataSource(
            dataset_path="json",
            load_dataset_kwargs={"data_files": str(Path(folder) / f"{split}.jsonl"), "split": "train"},
            sample_processor=itemgetter("messages"),
            weight=part.weight,
        )
        for part, folder in zip(parts, folders, strict=True)
    ]
    return InterleavedChatDataLoader.Config(sources=sources, seed=seed)


def chat_tokens(weights: Path) -> TokensOf:
    """Return a function that counts the tokens of a chat as the loader does, which drops long ones."""
    reader = ChatDataset(
        dataset=Dataset.from_list([{}]),
        tokenizer=HuggingFaceTokenizer(tokenizer_path=str(weights)),
        sample_processor=itemgetter("messages"),
        seq_len=sys.maxsize,
    )

    def count(messages: Messages) -> int:
        try:
            inputs, _ = reader._tokenize_sample({"messages": messages})
        except Exception as error:  # of the template, which is code of the weights
            raise ShardError(
                f"the template of chats of {weights} refuses a chat ({reason(error, line=0)}): {messages}"[
                    :500
                ]
            ) from error
        return len(inputs)

    return count
