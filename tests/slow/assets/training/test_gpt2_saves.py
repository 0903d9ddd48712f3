"""Saves of gpt2 on two ranks of torchrun, without Slurm, and a checkpoint of an older version."""

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.slow.assets.training.training import python_of, wait_until
from training_cluster.paths import TRAINING

pytestmark = pytest.mark.slow

OLD = Path(__file__).parent / "gpt2-76b47378.tar.gz"
"""By commit 76b47378, with SETTINGS on two ranks: shards, a checkpoint of step 4, the rows of 12 steps."""
SETTINGS = {
    "GPT2_LAYERS": "1",
    "GPT2_HEADS": "2",
    "GPT2_WIDTH": "8",
    "GPT2_CONTEXT": "16",
    "VOCAB_SIZE": "300",
    "BATCH_SIZE": "2",
    "MAX_STEPS": "12",
    "WARMUP_STEPS": "2",
    "LEARNING_RATE": "0.01",
    "CHECKPOINT_EVERY": "4",
    "EVAL_SEQUENCES": "0",
    "LOG_EVERY": "1",
    "DEVICE": "cpu",
    "MIXED_PRECISION": "no",
    "OMP_NUM_THREADS": "1",
}
# While $RUN_DIR/hold exists, the flush of a checkpoint does not end.
HOLD = """
import os, time
from pathlib import Path

flush = os.fsync

def held(fd):
    while "/.step-" in os.readlink(f"/proc/self/fd/{fd}") and Path(os.environ["RUN_DIR"], "hold").exists():
        time.sleep(0.01)
    flush(fd)

os.fsync = held
"""


class Saves:
    """A run that continues from the checkpoint of the older version."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(OLD) as archive:
            archive.extractall(folder)  # Debian 12 has no filter
        self.run, self.checkpoints, self._log = folder / "run", folder / "checkpoints", folder / "log"
        (folder / "sitecustomize.py").write_text(HOLD)
        data = {"shards": str(folder / "shards"), "weights": None, "init_from": "scratch"}
        (self.run / "data.json").write_text(json.dumps(data))
        self._env = os.environ | {
            "RUN_DIR": str(self.run),
            "DATA_DIR": str(folder),
            "CHECKPOINT_DIR": str(self.checkpoints),
            "EXPECTED_WORLD_SIZE": "2",
            "SLURM_JOB_ID": "7",
            "START_NUMBER": "1",
            "PYTHONPATH": f"{folder}:{TRAINING}",
            "PYTHONPYCACHEPREFIX": "",
            **SETTINGS,
        }

    @contextmanager
    def training(self, **settings: str) -> Iterator[psutil.Popen]:
        """Two ranks, which are killed at the end of the block."""
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        ranks = [str(python_of("gpt2")), "-B", *torchrun, str(TRAINING / "gpt2" / "train.py")]
        self._log.write_text("")
        with self._log.open("a") as log:
            process = psutil.Popen(ranks, env=self._env | settings, stdout=log, stderr=log)
            try:
                yield process
            finally:
                left = [*process.children(recursive=True), process] if process.is_running() else []
                for each in left:
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
                psutil.wait_procs(left)

    def train(self) -> str:
        """Train until the ranks end; what they printed."""
        with self.training() as ranks:
            ranks.wait(timeout=300)
        return self.output

    @property
    def output(self) -> str:
        """Return what the ranks of the last start have printed."""
        return self._log.read_text()

    def losses(self) -> list[float]:
        """Return the losses of all steps."""
        return [json.loads(line)["loss"] for line in (self.run / "metrics.jsonl").read_text().splitlines()]

    def steps(self) -> list[int]:
        """Return the steps of the complete checkpoints."""
        return sorted(int(folder.name.removeprefix("step-")) for folder in self.checkpoints.glob("step-*"))

    def wait_for(self, words: str) -> None:
        """Wait until the ranks have printed words."""
        wait_until(lambda: words in self.output, timeout_s=300, what=f"{words}, after\n{self.output}")


@pytest.fixture
def saves(tmp_path: Path) -> Saves:
    return Saves(tmp_path)


def test_checkpoints_of_both_forms_give_the_same_losses(saves: Saves) -> None:
    # Those of the older version. Another CPU may add in another order.
    expected = pytest.approx(saves.losses(), rel=1e-6)
    for begin in (4, 8):
        output = saves.train()
        assert f"resuming from {saves.checkpoints}/step-{begin:06d}\n" in output, output
        assert saves.losses() == expected
        assert saves.steps() == [4, 8, 12]
        shutil.rmtree(saves.checkpoints / "step-000012")
    files = {file.name: file.stat().st_mode for file in (saves.checkpoints / "step-000008").iterdir()}
    assert {"model.safetensors", "optimizer.safetensors", "config.json", "tokenizer.json"} < {*files}
    assert len({*files.values()}) == 1, "a colleague may read them"


def test_local_saves_need_no_shared_one(saves: Saves, tmp_path: Path) -> None:
    """A restart continues behind the shared checkpoint, with the losses of a run that nothing interrupts."""
    expected = pytest.approx(saves.losses(), rel=1e-6)
    given = {"CHECKPOINT_LOCAL_EVERY": "5", "SCRATCH": str(tmp_path), "NPROC_PER_NODE": "2"}
    part = tmp_path / f"checkpoints-{os.getuid()}" / "7-" / "step-000010.1" / "all"
    (saves.run / "hold").touch()
    with saves.training(**given):
        saves.wait_for("step 12: ")
        wait_until(part.is_dir, timeout_s=60, what=str(part))
        assert saves.steps() == [4], "step 8 is being saved meanwhile"
    (saves.run / "hold").unlink()
    with saves.training(**given, START_NUMBER="2") as ranks:
        ranks.wait(timeout=300)
    assert f"resuming from {part}\n" in saves.output, saves.output
    assert saves.losses() == expected
    assert saves.steps() == [4, 12]
    rows = [json.loads(line) for line in (saves.run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "local_save_s" in row] == [6]


def test_a_save_in_progress_costs_no_checkpoint(saves: Saves) -> None:
    hold = saves.run / "hold"
    hold.touch()
    with saves.training():
        saves.wait_for("step 12: ")
        assert saves.steps() == [4], "step 8 is being saved meanwhile"
    before = saves.losses()
    with saves.training(WEIGHT_DECAY="0.3") as ranks:
        saves.wait_for("step 12: ")
        assert f"resuming from {saves.checkpoints}/step-000004\n" in saves.output
        assert [a == b for a, b in zip(before, saves.losses(), strict=True)] == [True] * 5 + [False] * 7
        (saves.run / "starts").write_text("2 4 2026-11-30T03:00:00Z n[1-2] 7\n")
        hold.unlink()
        assert ranks.wait(timeout=300)
    assert "start 2 of job 7 has the run now: these older ranks save nothing, and end." in saves.output
    assert saves.steps() == [4]
