"""Encodes hard and random texts word by word and by the library; prints "equal" for equal ids."""

# mypy: disable-error-code="import-not-found"
import array
import random
import sys
from pathlib import Path

from tokenizers import ByteLevelBPETokenizer
from trainkit.data import words
from trainkit.data.bpe import END_OF_TEXT, Bpe

TEXTS = 4000
# White space of Unicode, and what looks like it; letters, numbers, marks, and what GPT-2's pattern names.
HARD = [
    *map(chr, (*range(9, 14), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x200E))),
    *map(chr, (0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF, 0, 0x7F, 0x301, 0xBD, 0x2160, 0x4E00)),
    *("a", "Z", "1", "!", "?", ".", "_", "'s", "'ll", END_OF_TEXT, "\U0001f600"),
]


def main(folder: Path) -> None:
    """Train a small tokenizer, then compare."""
    trained = ByteLevelBPETokenizer()
    own = Path(__file__).read_text(encoding="utf-8")
    trained.train_from_iterator([own], vocab_size=500, special_tokens=[END_OF_TEXT], show_progress=False)
    trained._tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer = Bpe((folder / "tokenizer.json",)).open()
    assert words.is_by_word(tokenizer)
    draw = random.Random(1)
    texts = [own, ""]
    texts += ["".join(draw.choices(HARD, k=draw.randrange(1, 16))) for _ in range(TEXTS)]
    texts += [
        "".join(chr(draw.choice((draw.randrange(0x3000), draw.randrange(0xD800), 32, 10))) for _ in range(12))
        for _ in range(TEXTS)
    ]
    encode = words.text_encoder(tokenizer, lambda ids: array.array("H", ids).tobytes())
    whole = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    for text, ids, each in zip(texts, encode(texts), whole, strict=True):
        assert ids == array.array("H", each.ids).tobytes(), ascii(text)
    tokenizer.pre_tokenizer.add_prefix_space = True
    assert not words.is_by_word(tokenizer)
    print("equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
