"""Weights, tokenizer and data of titan, before its ranks start.

Called by prepare.sh, once a job, with the arguments of train.py. Environment: DATA_DIR, RUN_DIR,
CHECKPOINT_DIR, EXPECTED_WORLD_SIZE; the settings (settings.py), of them INIT_FROM (trainkit.data.hf_weights);
PREPARE_WORKERS (processes; all cores), VALIDATION_EVERY, TRAINING_BUCKET; HF_ENDPOINT, HF_TOKEN.

Writes $DATA_DIR/<text>-<tokenizer>/ (shards, manifest.json, tokenizer.json), $DATA_DIR/models/,
$DATA_DIR/downloads/ (data sets of the hub), and $RUN_DIR/data.json, which train.py reads. Skips what is done,
finishes what was interrupted.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

from fields import Settings
from nodes import check_vocabulary, check_weights, fit, known_model, readers, saves_of
from settings import read_settings, split_arguments
from texts import STREAM, address
from trainkit.data import bpe
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.examples.chats import Chats
from trainkit.data.hf_weights import find_weights
from trainkit.data.hub_text import HUB_NAME, HubDataset
from trainkit.data.lifecycle import main, note_for_training, validation_every
from trainkit.data.shards import ShardError, check_sequences, read_manifest, sha256_of
from trainkit.data.text_shards import TOKENIZER, TOKENIZER_CONFIG, TextShards
from trainkit.loggers import check_logger
from trainkit.run import checkpoints
from trainkit.run.run import Run, reason
from trainkit.run.settings import ranks_of_node
from trainkit.sizes import Choice

WORKLOAD = "titan"
VALIDATION_EVERY = 20
STREAM_WORKERS = 2
"""Processes of a rank that read a stream and tokenize it, so that a step does not wait for the hub."""
VALIDATION_SPLITS = ("validation", "test")


def run() -> None:
    """Prepare weights and data, and note both for train.py."""
    settings = read_settings()
    check_logger(settings.logger)
    data = Path(os.environ["DATA_DIR"])
    weights = find_weights(settings.init_from, data=data)
    if weights and not settings.config:
        check_weights(settings, weights)
    tokenizer = given_tokenizer(settings.tokenizer, weights)
    if settings.parts[0].name.startswith(STREAM):
        note = prepare_streams(settings, tokenizer, ranks=data_ranks(settings, weights))
    else:
        note = prepare_shards(data, settings, tokenizer, weights)
    if weights:
        # Beside its tokenizer are the settings and the template that belong to it.
        note |= {"weights": str(weights), "tokenizer": str(weights)}
    if model := known_model(settings, str(weights) if weights else None):
        check_vocabulary(int(str(note.get("vocab_size", 0))), model.vocabulary)
    check_recipe(settings, split_arguments(sys.argv[1:])[1], note)
    note_for_training(**note)  # type: ignore[arg-type]


def check_recipe(settings: Settings, options: list[str], note: dict[str, object]) -> None:
    """Die of a CONFIG or options of torchtitan that the ranks would refuse."""
    if not (settings.config or options):
        return  # torchtitan takes seconds, and the rest is checked without it
    if settings.is_cpu:
        import cpu  # noqa: PLC0415

        cpu.install()
    from config import build  # noqa: PLC0415 (after the replacements)

    os.environ |= {"RANK": "0", "LOCAL_RANK": "0"}
    chosen = dataclasses.replace(settings, **vars(Choice(**settings.of_memory)))  # type: ignore[arg-type]
    build(chosen, Run.from_environment(), note, options)


def prepare_shards(
    data: Path, settings: Settings, tokenizer: Path | None, weights: Path | None
) -> dict[str, object]:
    """Make token shards of each text, all with one tokenizer; return the note for train.py.

    Raises:
        ShardError: a text has too few sequences.
    """
    ranks, length = data_ranks(settings, weights), settings.seq_len
    folders, described = list[Path](), list[str]()
    kinds = Chats.suffixes if settings.task == "sft" else TextShards.suffixes
    for part in settings.parts:
        is_hub = HUB_NAME.fullmatch(part.name)
        text = HubDataset.named(part.name, suffixes=kinds, task=settings.task) if is_hub else None
        of_part: dict[str, Any] = {
            "data": data,
            "name": text.name if text else part.name,
            "published": text,
            "vocab_size": settings.vocab_size,
            "validation_every": validation_every(VALIDATION_EVERY),
        }
        if settings.task == "sft" and weights:  # settings.py refuses it without
            shards: TextShards = Chats(**of_part, weights=weights, seq_len=length)
        else:
            shards = TextShards(**of_part, tokenizer=tokenizer)
        folders.append(shards.ensure(DatasetBucket.of_workload(WORKLOAD)))
        manifest = read_manifest(folders[-1])
        check_sequences(folders[-1], manifest, length, ranks=ranks, validates=settings.eval_sequences > 0)
        if 0 < manifest.longest < length and not manifest.packed:
            print(
                f"data: no document of {part.name} is longer than {manifest.longest:,} tokens: "
                f"SEQ_LEN={length} gains nothing"
            )
        described += shards.note()["described"]
        tokenizer = tokenizer or folders[0] / TOKENIZER
    first = read_manifest(folders[0])
    return {
        "shards": [str(folder) for folder in folders],
        "described": described,
        "tokens": first.tokens("train") if len(folders) == 1 else 0,
        "sequences": [read_manifest(each).sequences("train", length) for each in folders],
        "tokenizer": str(weights or folders[0]),
        "vocab_size": first.vocab_size,
        "end_of_text": -1 if first.packed else bpe.Bpe((folders[0] / TOKENIZER,)).end_of_text,
    }


def prepare_streams(settings: Settings, tokenizer: Path | None, *, ranks: int) -> dict[str, object]:
    """Check data sets that are streamed, of which nothing is made; return the note for train.py.

    Args:
        ranks: number of ranks that read different data.

    Raises:
        ShardError: a data set cannot be read, or there is no tokenizer with an end of text.
    """
    if not tokenizer or not has_key(tokenizer.with_name(TOKENIZER_CONFIG), "eos_token"):
        raise ShardError(
            f"DATA={STREAM}... is tokenized by torchtitan, which needs a folder with {TOKENIZER} and "
            f"{TOKENIZER_CONFIG} that names an eos_token: give INIT_FROM or TOKENIZER=/FOLDER."
        )
    val_splits, workers = [], STREAM_WORKERS
    for part in settings.parts:
        val_split, files = stream_of(part.name, validates=settings.eval_sequences > 0)
        val_splits.append(val_split)
        each = f"each reads {files // ranks:,}"
        if files % ranks:
            each = (
                "each reads all of them, and drops the rows of the others: take a number that divides "
                f"{files:,}, or give {part.name.removeprefix(STREAM)}, which is downloaded and prepared once"
            )
        workers = min(workers, files if files % ranks else files // ranks)
        print(f"data: {part.name} has {files:,} files for {ranks:,} data-parallel ranks: {each}")
    return {
        "tokenizer": str(tokenizer.parent),
        "vocab_size": bpe.Bpe((tokenizer,)).vocab_size,
        "val_splits": val_splits,
        "workers": workers,
    }


def stream_of(name: str, *, validates: bool) -> tuple[str, int]:
    """Return the validation split of a data set of the hub, and the number of its files to train on.

    Raises:
        ShardError: the data set cannot be read, or has no such split.
    """
    from datasets import get_dataset_split_names, load_dataset  # noqa: PLC0415 (seconds)

    path, configuration = address(name)
    try:
        splits = get_dataset_split_names(path, configuration)
        train = (
            load_dataset(path, configuration, split="train", streaming=True) if "train" in splits else None
        )
    except Exception as error:  # of the hub, the network or the data set's own format
        raise ShardError(
            f"DATA={name} cannot be read ({reason(error, line=0)}): compare its name, give HF_TOKEN if it is "
            "gated, and give the nodes access to the hub (NAT, or HF_ENDPOINT)."
        ) from error
    found = [split for split in VALIDATION_SPLITS if split in splits]
    if not train or (validates and not found):
        raise ShardError(
            f"DATA={name} has the splits {', '.join(splits)}, and train and one of "
            f"{', '.join(VALIDATION_SPLITS)} are needed: give EVAL_SEQUENCES=0 to train without validation."
        )
    return found[0] if validates else "", int(train.num_shards)


def data_ranks(settings: Settings, weights: Path | None) -> int:
    """Return the number of ranks that read different data; 1 where nothing is trained.

    Dies if the model cannot fit, or the checkpoints of a new run, as the ranks would.
    """
    if not settings.trains:
        return 1
    ranks, folder = int(os.environ["EXPECTED_WORLD_SIZE"]), Path(os.environ["CHECKPOINT_DIR"])
    count, own = ranks // ranks_of_node(), str(weights) if weights else None
    fitted, _ = fit(settings, count=count, weights=own)
    if (saves := saves_of(fitted, count=count, weights=own)) and not checkpoints.steps(folder):
        checkpoints.check_space(folder, int(saves["bytes"] * saves["most"]))
    return readers(fitted, ranks)


def has_key(file: Path, key: str) -> bool:
    """Return True if a file of JSON exists and has a key of this name."""
    return file.is_file() and f'"{key}"' in file.read_text(encoding="utf-8")


def given_tokenizer(given: str, weights: Path | None) -> Path | None:
    """Return TOKENIZER if it is given, else the tokenizer of the weights, else None.

    Raises:
        ShardError: the file does not exist, or the weights have another tokenizer.
    """
    own = weights / TOKENIZER if weights else None
    if not given:
        return own
    file = Path(given) / TOKENIZER if Path(given).is_dir() else Path(given)
    if not file.is_file():
        raise ShardError(f"there is no file {file}: give the path of a tokenizer.json as TOKENIZER, or none.")
    if own and sha256_of(own) != sha256_of(file):
        raise ShardError(f"TOKENIZER={given} does not belong to {weights}: give none with INIT_FROM.")
    return file


if __name__ == "__main__":
    main(run)
