"""`trainctl new-workload`: a folder that is whole, named throughout, and like those that are there."""

import json
import re
from pathlib import Path

import pytest

from ops.lint.command import lint_files
from ops.new_workload import TEMPLATE, create_workload
from training_cluster.paths import TRAINING
from training_cluster.problems import ConfigurationError

FILES = set(
    "README.md prepare.sh settings.py train.sh train.py requirements.lock requirements.txt rehearsal.env "
    "figures.json".split()
)


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A folder of workloads with one in it."""
    for name in ("job.slurm", "prepare.sh", "train.sh"):
        (tmp_path / name).touch()
    old = tmp_path / "bert"
    (old / "__pycache__").mkdir(parents=True)
    (tmp_path / "trainkit").mkdir()
    (old / "train.sh").write_text("# sbatch /fsx/training/job.slurm bert\nBERT=bert-large\n")
    (old / "vocab.bin").write_bytes(b"\xff\x00bert")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_it_has_every_file_of_the_contract(training: Path) -> None:
    made = create_workload("my-model", into=training)
    assert made == training / "my-model"
    assert set(contents(made)) == FILES
    for name, text in contents(made).items():
        assert TEMPLATE.name.encode() not in text, name
    assert "job.slurm my-model" in (made / "README.md").read_text()
    assert json.loads((made / "figures.json").read_text()) == []
    assert lint_files(made.glob("*.sh")) == []


def test_the_template_has_the_torch_of_gpt2() -> None:
    """One torch in all of a cluster's environments."""

    def pins(file: Path) -> set[str]:
        return set(re.findall(r"^torch==\S+", file.read_text(), re.MULTILINE))

    assert pins(TEMPLATE / "requirements.txt") == pins(TRAINING / "gpt2" / "requirements.txt") != set()


def test_a_copied_workload_is_renamed_in_paths_only(training: Path) -> None:
    before = contents(training)
    with pytest.raises(ConfigurationError, match="already exists and is not changed"):
        create_workload("bert", into=training)
    assert contents(training) == before
    made = create_workload("my-bert", into=training, source="bert")
    assert contents(made) == {
        "train.sh": b"# sbatch /fsx/training/job.slurm my-bert\nBERT=bert-large\n",
        "vocab.bin": b"\xff\x00bert",
    }
    assert (training / "bert" / "train.sh").read_text().endswith("job.slurm bert\nBERT=bert-large\n")


def test_an_interrupted_creation_leaves_no_files(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", fail)
    before = contents(training)
    with pytest.raises(KeyboardInterrupt):
        create_workload("my-model", into=training)
    assert contents(training) == before
    assert not list(training.glob(".new-*"))
