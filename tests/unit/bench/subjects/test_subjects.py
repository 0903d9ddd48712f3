"""Subjects of the benchmarks: made-up text, GPT-2's size, the calls of what people use instead."""

from pathlib import Path

from bench.subjects import corpus
from bench.subjects.gpt2_programs import Sizes

SIZES = Sizes(layers=12, heads=12, width=768, context=1024, vocab_size=50304, batch=12, steps=2, after=1)


def test_parameters_are_those_of_gpt2() -> None:
    # 124,439,808 with 50,257 tokens and 1,024 positions; 47 rows more, and no positions.
    assert SIZES.parameters == 124_439_808 + 47 * 768 - 1024 * 768


def test_made_up_text_is_always_the_same_and_both_formats_hold_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written = corpus.write(tmp_path / name, size_bytes=40_000, files=2)
        assert 40_000 <= written < 50_000
    for file in ("0.txt", "1.txt", "0.jsonl", "1.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "0.txt").read_text() != (tmp_path / "a" / "1.txt").read_text()
    documents = (tmp_path / "a" / "0.txt").read_text().count("\n\n")
    assert documents == len((tmp_path / "a" / "0.jsonl").read_text().splitlines())
