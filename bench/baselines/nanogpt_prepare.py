"""nanoGPT's data/openwebtext/prepare.py, on our text instead of the text that it downloads.

    python nanogpt_prepare.py COPY_OF_prepare.py WORKERS VOCABULARY_FOLDER TEXT.jsonl ...

It asks `datasets` for OpenWebText and `tiktoken` for GPT-2's vocabulary; both are replaced with files of
ours. Two constants are also changed: the number of processes, and the number of batches, which must
not exceed the number of documents.
"""

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
# GPT-2's pattern, as defined in tiktoken.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def main() -> None:
    """Run the script in its own folder, since it writes its files there."""
    script, workers, vocabulary, texts = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    load = datasets.load_dataset

    def load_ours(_name: str, **_named: Any) -> Any:
        cache = str(script.parent / "cache")
        return load("json", data_files=texts, cache_dir=cache, num_proc=int(workers))

    datasets.load_dataset = load_ours
    encoding = read_encoding(vocabulary / "encoder.json")
    tiktoken.get_encoding = lambda _name: encoding
    source = script.read_text(encoding="utf-8")
    for line, ours in CONSTANTS.items():
        if line not in source:
            sys.exit(f"{script} has no line {line.strip()!r}: it is from another commit.")
        source = source.replace(line, ours.format(workers=workers))
    script.write_text(source, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def read_encoding(file: Path) -> tiktoken.Encoding:
    """Return an encoding with the ids of encoder.json, which a trained BPE numbers in order of its merges."""
    ids: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
    end = ids.pop(END_OF_TEXT)
    bytes_of = byte_characters()
    ranks = {bytes(bytes_of[character] for character in token): number for token, number in ids.items()}
    return tiktoken.Encoding(
        name="ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: end}
    )


def byte_characters() -> dict[str, int]:
    """Map GPT-2's characters to the 256 bytes: printable bytes to themselves, the others to 256 and above."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + n): byte for n, byte in enumerate(others)}


if __name__ == "__main__":
    main()
