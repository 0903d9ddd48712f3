"""gpt2's preparation with its real environment: OpenWebText's layout, published weights, the bucket.

The hub and the bucket are servers on this machine; nothing is downloaded.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from tests.slow.assets.training.training import python_of
from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import GPT2
from training_cluster.paths import TRAINING

# Minutes, most of them the start of programs: make test-all.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

FILES, DOCUMENTS = 3, 1500
# Makes a small hub: a GPT-2 of 2 layers with a tokenizer of its own, and OpenWebText as parquet.
MAKE_HUB = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel
root, files, documents = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
words = Path(sys.argv[4]).read_text().split()
model = root / "models/openai-community/gpt2"
data = root / "datasets/Skylion007/openwebtext/plain_text"
data.mkdir(parents=True)
config = GPT2Config(vocab_size=400, n_positions=64, n_embd=32, n_layer=2, n_head=2)
GPT2LMHeadModel(config).save_pretrained(model)
bpe = ByteLevelBPETokenizer()
bpe.train_from_iterator(words, vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False)
bpe._tokenizer.save(str(model / "tokenizer.json"))
for number in range(files):
    texts = [" ".join(words[(i * 37 + number) % 500:][:60 + i % 90]) for i in range(documents)]
    name = f"train-{number:05d}-of-00080.parquet"
    pq.write_table(pa.table({"text": texts}), data / name, row_group_size=1000)
"""


@dataclass(frozen=True)
class Node:
    """A machine that prepares gpt2."""

    data: Path
    python: Path
    environment: dict[str, str]

    def prepare(self, **env: str) -> str:
        """Run prepare.py as prepare.sh does, to its end; return its output."""
        done = self.run(**env)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def refused(self, **env: str) -> str:
        """Return the last line of a preparation that is refused."""
        done = self.run(**env)
        assert done.returncode == 1, done.stdout
        return done.stdout.strip().splitlines()[-1]

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        run_dir = self.data.parent / "run"
        run_dir.mkdir(exist_ok=True)
        self.data.mkdir(exist_ok=True)
        return subprocess.run(
            [self.python, "-B", str(GPT2 / "prepare.py")],
            env={**self.environment, "DATA_DIR": str(self.data), "RUN_DIR": str(run_dir), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def shards(self) -> Path:
        return self.data / "openwebtext-gpt2"

    def content(self) -> dict[str, bytes]:
        """All files but the one with the times at which the others were verified."""
        files = [file for file in self.shards.iterdir() if file.is_file() and file.name != "verified.json"]
        return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of the workload's environment."""
    return python_of("gpt2")


@pytest.fixture(scope="module")
def hub_folder(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    text = folder / "text"
    text.write_text((TRAINING.parents[1] / "README.md").read_text(encoding="utf-8") * 3, encoding="utf-8")
    command = [str(python), "-B", "-c", MAKE_HUB, str(folder), str(FILES), str(DOCUMENTS), str(text)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def hub(hub_folder: Path) -> Iterator[Hub]:
    with hub_server(hub_folder) as running:
        yield running


@pytest.fixture
def node(tmp_path: Path, python: Path, hub: Hub) -> Node:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(TRAINING),
        "HF_ENDPOINT": hub.url,
        "CORPUS": "openwebtext",
        "INIT_FROM": "gpt2",
        "PREPARE_WORKERS": "2",
        "VALIDATION_EVERY": "50",
        "EXPECTED_WORLD_SIZE": "2",
        "GPT2_CONTEXT": "32",
    }
    return Node(tmp_path / "data", python, environment)


def test_openwebtext_is_tokenized_with_gpt2s_own_tokenizer(node: Node, hub: Hub) -> None:
    said = node.prepare()
    noted = json.loads((node.data.parent / "run" / "data.json").read_text(encoding="utf-8"))
    assert noted["weights"] == str(node.data / "models" / "gpt2")
    assert noted["shards"] == str(node.shards)
    manifest = json.loads((node.shards / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["vocab_size"], manifest["source"]["corpus"]) == (400, "openwebtext")
    assert [shard["file"] for shard in manifest["splits"]["train"]] == [
        f"train-{i:05d}.bin" for i in range(FILES)
    ]
    assert f"{FILES} of {FILES} shards" in said
    asked = len(hub.requests)
    assert "is there" in node.prepare()
    assert len(hub.requests) == asked, "what is there needs no hub"


def test_a_parquet_without_text_is_refused(node: Node, tmp_path: Path) -> None:
    raw = node.data / "raw"
    raw.mkdir(parents=True)
    (raw / "a.parquet").write_bytes(b"PAR1 nothing of it")
    assert "a.parquet is not a readable parquet file" in node.refused(CORPUS="raw")
    script = (
        "import pyarrow as pa, pyarrow.parquet as pq, sys; pq.write_table(pa.table({'b': [1]}), sys.argv[1])"
    )
    subprocess.run([node.python, "-c", script, str(raw / "a.parquet")], check=True)
    assert 'a.parquet has no column "text" (it has b)' in node.refused(CORPUS="raw")


def test_own_text_of_three_kinds_is_one_corpus(node: Node) -> None:
    raw = node.data / "raw"
    raw.mkdir(parents=True)
    (raw / "a.txt").write_text("Some text of one's own.\n\n" * 2000, encoding="utf-8")
    lines = (json.dumps({"text": f"Document {i} <|endoftext|>"}) for i in range(500))
    (raw / "b.jsonl").write_text("\n".join(lines), encoding="utf-8")
    table = "pa.table({'text': ['A row. ' * 9] * 99})"
    script = f"import pyarrow as pa, pyarrow.parquet as pq, sys; pq.write_table({table}, sys.argv[1])"
    subprocess.run([node.python, "-c", script, str(raw / "c.parquet")], check=True)
    said = node.prepare(CORPUS="", INIT_FROM="scratch", VOCAB_SIZE="400")
    assert "training a tokenizer of 400 tokens" in said
    manifest = json.loads((node.data / "raw-vocab-400" / "manifest.json").read_text(encoding="utf-8"))
    assert [part["name"] for part in manifest["source"]["parts"]] == ["a.txt and 2 more"]
    ends = sum(
        memoryview((node.data / "raw-vocab-400" / f"{split}-00000.bin").read_bytes())
        .cast("H")
        .tolist()
        .count(0)
        for split in ("train", "val")
    )
    assert ends == 1 + 500 + 99, "what looks like an end of text in a text is text"


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An S3 on this machine with a bucket, as the aws program is told of it."""
    server = ThreadedMotoServer(port=0)
    server.start()
    _, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
    }
    aws(environment, "s3", "mb", "s3://training")
    yield environment | {"TRAINING_BUCKET": "training"}
    server.stop()


def aws(environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(
        ["aws", *arguments], env={**os.environ, **environment}, check=True, capture_output=True, text=True
    ).stdout


def test_another_cluster_takes_shards_from_the_bucket(
    node: Node, hub: Hub, bucket: dict[str, str], tmp_path: Path
) -> None:
    key = "s3://training/datasets/gpt2/openwebtext-gpt2/"
    node.prepare(**bucket)
    there = aws(bucket, "s3", "ls", key)
    assert {line.split()[-1] for line in there.splitlines()} == set(node.content())
    shard = ("--bucket", "training", "--key", "datasets/gpt2/openwebtext-gpt2/train-00000.bin")
    metadata = json.loads(aws(bucket, "s3api", "head-object", *shard))["Metadata"]
    assert metadata["file-owner"] == str(os.getuid())
    assert metadata["file-permissions"] == f"0{(node.shards / 'train-00000.bin').stat().st_mode:o}"
    node.prepare(**bucket)
    assert aws(bucket, "s3", "ls", key) == there, "nothing is brought twice"

    other = Node(tmp_path / "other", node.python, node.environment)
    other.data.mkdir()
    shutil.copytree(node.data / "models", other.data / "models")
    asked = len(hub.requests)
    assert f"taken from {key.rstrip('/')}" in other.prepare(**bucket)
    assert other.content() == node.content()
    assert len(hub.requests) == asked

    (other.shards / "train-00000.bin").write_bytes(b"torn")
    assert "train-00000.bin is corrupt" in other.prepare(**bucket)
    assert other.content() == node.content()


def test_text_of_the_machine_needs_no_bucket(node: Node, tmp_path: Path) -> None:
    """A rehearsal never asks AWS: there a program that looks like aws says that it was called."""
    stub = tmp_path / "bin" / "aws"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n", encoding="utf-8")
    stub.chmod(0o755)
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "TRAINING_BUCKET": "training"}
    path = f"{stub.parent}:{node.environment['PATH']}"
    node.prepare(CORPUS="machine", INIT_FROM="scratch", VOCAB_SIZE="300", PATH=path, **nowhere)
    assert not (tmp_path / "called").exists()
