"""Files of fairseq and Megatron, joined of shards once for each state of these."""

import json
from pathlib import Path

import numpy as np
import pytest
from trainkit.data import indexed, shards

IDS = {"train-00000": [5, 2, 2, 7], "train-00001": [8, 9, 2], "val-00000": [4, 2], "test-00000": [3]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of shards of three splits, whose sequences end with 2."""
    splits: dict[str, tuple[shards.Shard, ...]] = {}
    for name, ids in IDS.items():
        file, split = tmp_path / f"{name}.bin", name.partition("-")[0]
        file.write_bytes(np.array(ids, dtype="<u2").tobytes())
        shard = shards.Shard(file.name, len(ids), shards.sha256_of(file))
        splits[split] = (*splits.get(split, ()), shard)
    shards.write_manifest(
        tmp_path,
        shards.Manifest(dtype="uint16", vocab_size=10, tokenizer_sha256="", source={}, splits=splits),
    )
    return tmp_path


def make(folder: Path, *, size: int = 10) -> indexed.Indexed:
    return indexed.make_indexed(
        folder / "theirs",
        splits={"train": "train", "val": "valid", "test": "test", "other": "other"},
        end=2,
        dtype="int32",
        documents=False,
        noted={"size": size},
        others={"dict.txt": b"a 1\n"},
    )


def test_shards_are_joined_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make(folder)
    theirs = folder / "theirs"
    assert np.fromfile(theirs / "train.bin", "<i4").tolist() == IDS["train-00000"] + IDS["train-00001"]
    index = (theirs / "train.idx").read_bytes()
    assert np.frombuffer(index, "<i4", 3, offset=26).tolist() == [2, 1, 4], "one is in two shards"
    assert (made.tokens, made.prefixes["valid"]) == ({"train": 7, "valid": 2, "test": 1}, theirs / "valid")
    assert indexed.read_indexed(theirs) == made
    capsys.readouterr()
    assert make(folder, size=11) == made
    assert capsys.readouterr().out.splitlines()[-1] == f"data: {theirs} is there"
    (theirs / "train.bin").write_bytes(b"torn")
    assert make(folder) == made
    (theirs / "train.bin").write_bytes(bytes(28))
    with pytest.raises(shards.ShardError, match=r"train\.bin is corrupt: its sha256 is"):
        make(folder)


def test_what_is_too_long_is_cut_between_shards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "LONGEST", 3)
    make(folder)
    index = (folder / "theirs" / "train.idx").read_bytes()
    assert np.frombuffer(index, "<i4", 4, offset=26).tolist() == [2, 1, 1, 3]


def test_other_shards_and_older_versions_are_joined_anew(folder: Path) -> None:
    before, file = make(folder), folder / "theirs" / "manifest.json"
    noted = json.loads(file.read_text())
    file.write_text(json.dumps({name: noted[name] for name in ("made_of", "tokens", "files")}))
    assert indexed.read_indexed(folder / "theirs") is None
    assert make(folder) == before
    (folder / "train-00001.bin").write_bytes(np.array([8, 8, 2], dtype="<u2").tobytes())
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"vocab_size": 10', '"vocab_size": 9'))
    assert make(folder).sum != before.sum


def test_an_index_points_beyond_two_gib(tmp_path: Path) -> None:
    """Nightly tests compare small ones with those of fairseq and Megatron."""
    file = tmp_path / "x.idx"
    indexed.write_index(file, [2**31 - 1] * 3, dtype=np.int32, documents=False)
    assert np.frombuffer(file.read_bytes()[-8:], dtype="<i8") == [2 * (2**31 - 1) * 4]
