"""bert-trainium's preparation of Wikipedia with its real environment, from a hub on this machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.data.hub_server import Hub, hub_server
from tests.unit.assets.training.workload_modules import BERT
from training_cluster.paths import TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

EDITION = "20231101.simple"
# Two files as the hub has them, with the columns of wikimedia/wikipedia.
MAKE_HUB = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
folder = Path(sys.argv[1])
folder.mkdir(parents=True)
words = Path(sys.argv[2]).read_text().split()
for number in range(2):
    texts = [". ".join(" ".join(words[i * 7 + 9 * s :][:9]) for s in range(12)) for i in range(120)]
    columns = {name: [f"{number}-{i}" for i in range(120)] for name in ("id", "url", "title")}
    pq.write_table(pa.table({**columns, "text": texts}), folder / f"train-{number:05d}-of-00002.parquet")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the workload's environment for CPUs, which is made if it is not there."""
    venvs = os.environ.get("TRAINING_VENVS") or str(tmp_path_factory.mktemp("venvs"))
    environment = f"{venvs}/bert-trainium-cpu"
    script = f'source "{TRAINING}/environment.sh"; make_environment "{BERT}" "{environment}"'
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True)
    return Path(environment) / "bin" / "python"


@pytest.fixture
def hub(tmp_path: Path, python: Path) -> Iterator[Hub]:
    folder = tmp_path / "hub" / "datasets" / "wikimedia" / "wikipedia" / EDITION
    command = [str(python), "-c", MAKE_HUB, str(folder), str(BERT / "README.md")]
    subprocess.run(command, check=True, capture_output=True)
    with hub_server(tmp_path / "hub") as running:
        yield running


def prepare(python: Path, folder: Path, hub: Hub, **env: str) -> subprocess.CompletedProcess[str]:
    """Prepare as prepare.sh does."""
    (folder / "run").mkdir(exist_ok=True)
    settings = {
        "ACCELERATOR_KIND": "neuron",
        "WIKIPEDIA_EDITION": EDITION,
        "VOCAB_SIZE": "600",
        "BERT_CONTEXT": "64",
        "PREPARE_WORKERS": "2",
        "DATA_DIR": str(folder / "data"),
        "RUN_DIR": str(folder / "run"),
        "HF_ENDPOINT": hub.url,
        "PYTHONPATH": str(TRAINING),
    }
    return subprocess.run(
        [python, "-B", str(BERT / "prepare.py")],
        env={**os.environ, **settings, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wikipedia_is_downloaded_and_made_into_pairs(python: Path, hub: Hub, tmp_path: Path) -> None:
    part = tmp_path / "data" / "downloads" / f"wikipedia-{EDITION}" / ".train-00001-of-00002.parquet.part"
    part.parent.mkdir(parents=True)
    whole = (
        hub.folder / "datasets/wikimedia/wikipedia" / EDITION / "train-00001-of-00002.parquet"
    ).read_bytes()
    part.write_bytes(whole[:1000])
    done = prepare(python, tmp_path, hub)
    assert done.returncode == 0, done.stderr
    shards = tmp_path / "data" / f"wikipedia-{EDITION}-vocab-600-64"
    assert json.loads((tmp_path / "run" / "data.json").read_text()) == {"shards": str(shards)}
    manifest = json.loads((shards / "manifest.json").read_text())
    assert manifest["source"]["corpus"] == f"wikipedia-{EDITION}"
    assert len(manifest["splits"]["train"]) == 2
    assert sorted(asked for _, asked in hub.requests) == ["", "bytes=1000-"]
    hub.requests.clear()
    assert "is there" in prepare(python, tmp_path, hub).stdout
    assert hub.requests == []
