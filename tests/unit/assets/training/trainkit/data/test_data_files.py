"""Files that data is made of, their space, and the end of a preparation."""

import hashlib
import json
from pathlib import Path

import pytest
from trainkit.data import lifecycle, machine_text, shards
from trainkit.data.bpe import Bpe
from trainkit.data.hf_weights import WeightsError


def test_the_checksum_of_two_files_has_their_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    of_one, of_two = (hashlib.sha256(text).hexdigest() for text in (b"1", b"2"))
    assert Bpe((one,)).sha256 == of_one
    assert Bpe((one, two)).sha256 == hashlib.sha256((of_one + of_two).encode()).hexdigest()


@pytest.fixture
def stdlib(tmp_path: Path) -> Path:
    folder = tmp_path / "stdlib"
    for name, source in {
        "b.py": '"""Module b."""\nraise RuntimeError("imported")\n',
        "a.py": '"""Module a."""\nclass A:\n    """Class A."""\n    def f(self):\n        """Method f."""\n',
        "silent.py": "x = 1\n",
        "broken.py": "def (:\n",
        "test/test_a.py": '"""A test."""\n',
        "site-packages/other.py": '"""Someone else\'s."""\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def test_text_of_the_machine_is_gathered_once(stdlib: Path, tmp_path: Path) -> None:
    licences = tmp_path / "licences"
    (only,) = machine_text.gather(tmp_path / "none", licences=licences, stdlib=stdlib)
    texts = [json.loads(line)["text"] for line in only.read_text(encoding="utf-8").splitlines()]
    assert " ".join(texts).split() == "Module a. Class A. Method f. Module b.".split()
    licences.mkdir()
    (licences / "MIT-2").write_text("Permission is granted.\n", encoding="utf-8")
    (licences / "MIT").symlink_to("MIT-2")

    def gather() -> list[Path]:
        return machine_text.gather(tmp_path / "to", licences=licences, stdlib=stdlib)

    first, second = gather()
    assert first.read_text(encoding="utf-8") == '{"text": "Permission is granted.\\n"}\n'
    before = second.stat().st_mtime_ns
    assert gather()[1].stat().st_mtime_ns == before
    (licences / "BSD").write_text("Redistribution and use are permitted.\n", encoding="utf-8")
    assert "Redistribution" in gather()[0].read_text(encoding="utf-8")


def test_an_expected_error_ends_in_one_sentence() -> None:
    for error, sentence in (
        (WeightsError("there is no such model"), "there is no such model$"),
        (
            PermissionError(13, "denied", "/data/x"),
            "there is no permission for /data/x, which is another user",
        ),
    ):

        def run(error: Exception = error) -> None:
            raise error

        with pytest.raises(SystemExit, match=rf"^prepare\.py: {sentence}"):
            lifecycle.main(run)


def test_too_little_space_is_refused(tmp_path: Path) -> None:
    lifecycle.check_space(tmp_path, 1.0)
    with pytest.raises(shards.ShardError, match=r"the data needs about 1000000000\.0 GB and .* GB free"):
        lifecycle.check_space(tmp_path, 1e18)
