"""Files that all nodes of a job read reach them by Slurm's sbcast, on a real Slurm."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.assets.training.tiny import TINY, WITH_REQUIREMENTS, tiny_on_slurm
from tests.slow.assets.training.training import Training

pytestmark = pytest.mark.slow

INSTALL = 'cp "${0%/*}/torchrun.py" "$1/bin/torchrun"\n'
# Each rank tells where its interpreter is.
TRAIN = """\
#!/usr/bin/env bash
# Launchers: torchrun
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../launch.sh"
python="$(environment_python "$here")"
printf '%s\\n' "$("$python" -c 'import sys; print(sys.prefix)')" >"$RUN_DIR/prefix-$SLURMD_NODENAME"
start_ranks "$here" "$here/trainer.py" "$@"
"""
# The shared archive has no content any more once it is sent.
SBCAST = """\
#!/bin/sh
if [ -n "$LINK_DOWN" ]; then echo "sbcast: error: REQUEST_FILE_BCAST(gpu-2): timed out" >&2; exit 1; fi
/usr/bin/sbcast "$@" && for file; do case $file in *.tar) : >"$file" ;; esac; done
"""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "bin").mkdir()
    (folder / "bin" / "sbcast").write_text(SBCAST)
    (folder / "bin" / "sbcast").chmod(0o755)
    with tiny_on_slurm(folder) as training:
        workload = training.shared / "training" / "packed"
        shutil.copytree(TINY, workload)
        (workload / "prepare.sh").write_text(WITH_REQUIREMENTS)
        (workload / "install.sh").write_text(INSTALL)
        (workload / "train.sh").write_text(TRAIN)
        yield training


def run(training: Training, name: str, scratch: Path, **env: str) -> tuple[str, set[str]]:
    """Return the output of a job of two nodes, and the environments of its ranks."""
    scratch.mkdir()
    path = f"{training.shared.parent / 'bin'}:{training.environment['PATH']}"
    settings = {
        "MAX_RESTARTS": "0",
        "LOCAL_ENVIRONMENT": "yes",
        "SCRATCH": str(scratch),
        "MAX_STEPS": "2",
        "PATH": path,
    } | env
    said = training.wait(training.submit(name, workload="packed", **settings), state="COMPLETED")
    found = list((training.shared / "runs" / "packed" / name).glob("prefix-*"))
    assert len(found) == 2
    return said, {str(Path(file.read_text().strip()).parent.parent) for file in found}


def test_environments_reach_nodes_by_sbcast(training: Training, tmp_path: Path) -> None:
    said, used = run(training, "sent", tmp_path / "disks")
    assert "MiB) to the local disks of 2 nodes in " in said
    assert used == {str(tmp_path / "disks")}


def test_a_failed_broadcast_costs_no_job(training: Training, tmp_path: Path) -> None:
    for archive in (training.shared.parent / "venvs").glob("*.tar"):
        archive.unlink()
    said, used = run(training, "unsent", tmp_path / "disks", LINK_DOWN="yes")
    assert "from the shared file system: sbcast: error: REQUEST_FILE_BCAST(gpu-2): timed out" in said
    assert used == {str(tmp_path / "disks")}
