"""Data and settings of roberta, and fairseq-train's command line; neither torch nor fairseq is here."""

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from trainkit.data.documents import pieces_of
from trainkit.data.fetch import FetchError
from trainkit.data.lifecycle import main
from trainkit.data.shards import ShardError, sha256_of

from tests.unit.assets.training.workload_modules import Import

TEXTS = {"train": " = Title = \n\n one\x85line\n", "valid": " another\n", "test": " a third\n"}


@pytest.fixture(autouse=True)
def no_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINING_BUCKET", raising=False)


def test_wikitext_is_read_out_of_zip(load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wikitext, lines = load("wikitext"), load("lines")
    file = tmp_path / "raw" / "wikitext-103-raw-v1.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for split, text in TEXTS.items():
            opened.writestr(f"wikitext-103-raw/wiki.{split}.raw", text)
    monkeypatch.setattr(wikitext, "PIECE_BYTES", 13)
    units = wikitext.units(file)
    assert [(unit.split, unit.start) for unit in units] == [
        *[("train", start) for start in (0, 13)],
        ("val", 0),
        ("test", 0),
    ]
    read = ["".join(text for text, _ in lines.read_lines(unit)) for unit in units]
    assert read == ["= Title =\n\n", "one\x85line\n", "another\n", "a third\n"]
    assert list(lines.training_lines(units, 2)) == [" = Title = \n", "\n", " one\x85line\n"]
    with pytest.raises(FetchError, match=f"{file}.* its sha256 is {sha256_of(file)}, not 91c00ae2"):
        wikitext.have_zip(file.parent, None)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ShardError, match="is not a complete zip"):
        wikitext.units(file)
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("wiki.train.raw", "text")
    with pytest.raises(ShardError, match=r"has no wiki\.valid\.raw"):
        wikitext.units(file)


def test_a_dictionary_has_each_id_once(load: Import, tmp_path: Path) -> None:
    file = tmp_path / "dict.txt"
    (tmp_path / "encoder.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    file.write_text("2 900\n0 20\n1 3\nmadeupword0000 0\n")
    assert load("line_bpe").FairseqBpe(tmp_path).check_dictionary() == 4
    for text in ("0 1\n1 1\n", "0 1\n1 1\n2 1\n2 1\n", "0 1\n1 1\n2 1\n3 1\n"):
        file.write_text(text)
        with pytest.raises(ShardError, match=r"does not belong to encoder\.json"):
            load("line_bpe").FairseqBpe(tmp_path).check_dictionary()


def test_ids_have_the_places_of_their_symbols(load: Import, tmp_path: Path) -> None:
    """Behind fairseq's own symbols; a nightly test compares the files with fairseq's."""
    read, file = load("fairseq_format").read_numbering, tmp_path / "dict.txt"
    file.write_text("2 17\nmadeupword0000 0\n0 5 \n")
    # The id 1 has no symbol, and the last number is the end of a line.
    assert (read(file).indices.tolist(), read(file).dtype) == ([6, 3, 4, 2], "uint16")
    assert read(file).dictionary == "2 17\nmadeupword0000 0\n0 5\n"
    for count, dtype in ((65_495, "uint16"), (65_496, "uint32")):
        file.write_text("".join(f"{number} 1\n" for number in range(count)))
        assert read(file).dtype == dtype
    for line in ("1", "", "1 x", "0 1", "<unk> 1", "1 1 #fairseq:overwrite"):
        file.write_text(f"0 1\n{line}\n")
        with pytest.raises(ShardError, match=r"dict.txt, line 2: fairseq cannot read"):
            read(file)


def test_lines_of_own_text_are_divided_by_documents(load: Import, tmp_path: Path) -> None:
    lines, file = load("lines"), tmp_path / "text.txt"
    file.write_text("".join(f" paragraph\u2028{number} {'x' * 5000}\n\n" for number in range(6)))
    (piece,) = pieces_of(file, tmp_path)
    read = [text.split() for text, _ in lines.read_lines(piece)]
    assert [words[1] for words in read] == list("012345")
    texts = list(lines.read_lines(piece))
    assert texts[0][0].endswith("x\n\n"), "a document goes on"
    assert texts[-1][0].endswith("x\n\n\n"), "an empty line ends each document"
    assert texts[0][0].startswith("paragraph\n0 x"), "what ends a line elsewhere ends it here"
    pieces = [replace(piece, source=name) for name in "abcdefgh"]
    kept = [line for line in lines.training_lines(pieces, 3) if "x" in line]
    # Whole documents of six lines.
    assert 0 < len(kept) < 6 * len(pieces)
    assert not len(kept) % 6


def test_an_impossible_preparation_is_one_sentence(
    load: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["prepare.py"])
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for corpus, said in {
        "raw": r"there is no text: put \*\.txt, \*\.jsonl, .* or \*\.json\.zst into .*/raw",
        "books": 'CORPUS is "books"; allowed: wikitext-103, machine, raw',
    }.items():
        monkeypatch.setenv("CORPUS", corpus)
        monkeypatch.setenv("VOCAB_SIZE", "50257")  # of GPT-2, whose files are not downloaded
        with pytest.raises(SystemExit, match=said):
            main(load("prepare").run)


def test_shards_keep_their_dictionary(load: Import, tmp_path: Path) -> None:
    prepare, bpe = load("prepare"), load("line_bpe").FairseqBpe(tmp_path)
    for file, text in zip(bpe.files, ('{"a": 0}', "#version", "0 1\n"), strict=True):
        file.write_text(text)
    made = prepare.read_numbering(bpe.dictionary)
    manifest = SimpleNamespace(tokenizer_sha256=made.sha256(bpe.bpe))
    assert prepare.numbering_of(bpe, manifest) == made
    bpe.dictionary.write_text("0 2\n")
    with pytest.raises(ShardError, match=f"another BPE or dict.txt .*: remove {tmp_path}, and submit again"):
        prepare.numbering_of(bpe, manifest)
    for file in bpe.files:
        file.unlink()
        with pytest.raises(ShardError, match=f"No such file.*: remove {tmp_path}, and submit again"):
            prepare.numbering_of(bpe, manifest)


def test_inconsistent_gradients_are_finite(load: Import) -> None:
    for norms, found in (
        (("1.50000000", "2.50000000"), [1.5, 2.5]),
        (("1.50000000", "nan"), []),
        (("inf", "2.50000000"), []),
        ((), []),
    ):
        ranks = "\n".join(f"rank {rank:3d} = {norm}" for rank, norm in enumerate(norms))
        words = f"Fatal error: gradients are inconsistent.\ngrad_norm across the workers:\n{ranks}\n"
        assert load("gradient_norms").finite_norms(words) == found


GPU = {"ACCELERATOR_KIND": "gpu", "MIXED_PRECISION": "fp16"}


@pytest.fixture
def settings(load: Import, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("ACCELERATOR_KIND", "DEVICE", "MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    return load("settings")


def read(settings: ModuleType, environment: dict[str, str]) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        return settings.read_settings([])


def command(settings: ModuleType, environment: dict[str, str], **place: Any) -> list[str]:
    where = {"data": Path("/d"), "save_dir": Path("/c"), "restore_file": None}
    rank = {"rank": 9, "local_rank": 1, "world_size": 16}
    built: list[str] = settings.fairseq_arguments(read(settings, environment), **(where | rank | place))
    return built


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(f"--{name}") + 1]


def test_fairseq_is_told_the_world_and_precision(settings: ModuleType) -> None:
    built = command(settings, GPU)
    assert built[0] == "/d"
    told = {
        "distributed-world-size": "16",
        "distributed-rank": "9",
        "distributed-init-method": "env://",
        "distributed-backend": "nccl",
        "device-id": "1",
        "ddp-backend": "c10d",
    }
    assert {name: option(built, name) for name in told} == told
    assert "--distributed-no-spawn" in built
    assert "--cpu" not in built
    for precision, flags in (
        ("fp16", {"--fp16", "--memory-efficient-fp16"}),
        ("bf16", {"--bf16"}),
        ("no", set[str]()),
    ):
        built = command(settings, GPU | {"MIXED_PRECISION": precision})
        assert {part for part in built if part.startswith(("--fp16", "--bf16", "--memory"))} == flags
    for cpu in ({"ACCELERATOR_KIND": "none"}, {"ACCELERATOR_KIND": "gpu", "DEVICE": "cpu"}):
        built = command(settings, cpu)
        assert (option(built, "distributed-backend"), option(built, "ddp-backend")) == ("gloo", "legacy_ddp")
        assert "--cpu" in built


def test_a_resume_names_its_file_and_validations(settings: ModuleType) -> None:
    assert "--restore-file" not in command(settings, GPU)
    file = Path("/c/step-000100/checkpoint.pt")
    assert option(command(settings, GPU, restore_file=file), "restore-file") == str(file)
    # fairseq counts one more than it is told.
    ranks = int(option(command(settings, GPU), "distributed-world-size"))
    few = GPU | {"EVAL_SEQUENCES": str(4 * ranks * 8 - 1)}
    assert option(command(settings, few), "max-valid-steps") == "3"
    assert "--disable-validation" in command(settings, GPU | {"EVAL_SEQUENCES": "0"})


def test_roberta_large_has_its_published_size(settings: ModuleType) -> None:
    # 355.4 million with the output layer; Hugging Face's count is 1,024 more, for its one type of tokens.
    large = read(settings, {})
    assert settings.parameters(large, 50265) == 355_411_033
    # The output layer works for 15 % of the tokens only.
    assert settings.computing_parameters(large, 50265) == 302_309_376 + 7_877_990


def test_a_checkpoint_of_another_dictionary_is_refused(settings: ModuleType) -> None:
    folder, progress = Path("/c/step-000100"), {"step": 100, "dictionary_sha256": "1"}
    settings.check_checkpoint(folder, progress, dictionary_sha256="1")
    with pytest.raises(SystemExit, match=f"{folder} was trained with another dict.txt"):
        settings.check_checkpoint(folder, progress, dictionary_sha256="2")
