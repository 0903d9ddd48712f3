"""One byte-level BPE for all preparations, in the format of each.

    python vocabulary.py FOLDER SIZE TEXT.txt ...

Writes tokenizer.json (gpt2, titan), encoder.json, vocab.bpe and dict.txt (fairseq), gpt2-vocab.json and
gpt2-merges.txt (Megatron).
"""

import shutil
import sys
from pathlib import Path

from tokenizers import ByteLevelBPETokenizer

END_OF_TEXT = "<|endoftext|>"


def main() -> None:
    """Train the vocabulary and write it in all formats."""
    folder, size, texts = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True)
    trained = ByteLevelBPETokenizer()
    trained.train(texts, vocab_size=size, special_tokens=[END_OF_TEXT], show_progress=False)
    trained.save(str(folder / "tokenizer.json"))
    vocabulary, merges = map(Path, trained.save_model(str(folder)))
    for name in ("encoder.json", "gpt2-vocab.json"):
        shutil.copyfile(vocabulary, folder / name)
    for name in ("vocab.bpe", "gpt2-merges.txt"):
        shutil.copyfile(merges, folder / name)
    symbols = (f"{number} 1\n" for number in range(trained.get_vocab_size()))
    (folder / "dict.txt").write_text("".join(symbols), encoding="utf-8")


if __name__ == "__main__":
    main()
