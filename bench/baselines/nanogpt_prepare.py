"""nanoGPT's data/openwebtext/prepare.py, on text of ours instead of the one that it downloads.

    python nanogpt_prepare.py COPY_OF_prepare.py WORKERS VOCABULARY_FOLDER TEXT.jsonl ...

It asks `datasets` for OpenWebText and `tiktoken` for GPT-2's vocabulary; both are answered with files of
ours. All else is its own, but for two constants: its processes, and the batches that it writes, which may
not be more than there are documents.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import datasets
import tiktoken

END_OF_TEXT = "<|endoftext|>"
CONSTANTS = {
    "\nnum_proc = 8\n": "\nnum_proc = {workers}\n",
    "total_batches = 1024\n": "total_batches = min(1024, len(dset))\n",
}
# GPT-2's, as tiktoken has it.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def main() -> None:
    """Run it, where it lies: it writes its files beside itself."""
    script, workers, vocabulary, texts = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    load = datasets.load_dataset

    def load_ours(_name: str, **_named: Any) -> Any:
        cache = str(script.parent / "cache")
        return load("json", data_files=texts, cache_dir=cache, num_proc=int(workers))

    datasets.load_dataset = load_ours
    encoding = encoding_of(vocabulary / "encoder.json")
    tiktoken.get_encoding = lambda _name: encoding
    source = script.read_text(encoding="utf-8")
    for line, ours in CONSTANTS.items():
        if line not in source:
            sys.exit(f"{script} has no line {line.strip()!r}: it is of another commit.")
        source = source.replace(line, ours.format(workers=workers))
    script.write_text(source, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def encoding_of(file: Path) -> tiktoken.Encoding:
    """The same ids as those of encoder.json: a BPE that is trained gives them in the order of its merges."""
    ids: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
    end = ids.pop(END_OF_TEXT)
    bytes_of = byte_characters()
    ranks = {bytes(bytes_of[character] for character in token): number for token, number in ids.items()}
    return tiktoken.Encoding(
        name="ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: end}
    )


def byte_characters() -> dict[str, int]:
    """GPT-2's characters for the 256 bytes: those that print stand for themselves, the others follow 255."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + n): byte for n, byte in enumerate(others)}


if __name__ == "__main__":
    main()
