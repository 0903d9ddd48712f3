"""Jobs in containers: job.slurm on a real Slurm, with an image that is really unpacked and entered."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.bootstrap import SHIMS
from rehearsal.containers.base import NoRootError
from rehearsal.containers.image import make_image
from rehearsal.workspace import IMAGES
from tests.slow.assets.training.tiny import TINY, WITH_REQUIREMENTS
from tests.slow.assets.training.training import Training, losses, training_on_slurm
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.root]

# Megatron asks for a GPU where there is none; rehearsals give all jobs this variable.
WITH_SHIMS = {"PYTHONPATH": str(SHIMS)}
# What the ranks see is written down by themselves.
PREPARE = (
    WITH_REQUIREMENTS
    + """\
cp -n "$here/torchrun.py" "$venv/bin/torchrun"
if [[ -z $CONTAINER_IMAGE ]]; then exit; fi
{ id -u; stat --format %u "$TRAINING_SHARED/training" /etc/passwd; ls -d /opt /etc/image-of-the-rehearsal
  printf '%s\\n' "$MAX_STEPS" "$IMAGE_OF" "$PATH" "$PWD"; } >"$RUN_DIR/seen"
touch /left-in-the-container
"""
)
FINISH = """\
if [[ -z $CONTAINER_IMAGE ]]; then exit; fi
printf 'finished in %s\\n' "$IMAGE_OF" >&2
ls /left-in-the-container >&2
"""


@pytest.fixture(scope="module")
def image() -> Path:
    try:
        return make_image(IMAGES, environment=None, say=print)
    except NoRootError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory, image: Path) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("box")
    env = {"TRAINING_VENVS": str(folder / "venvs"), "CONTAINER_IMAGE": str(image)}
    with training_on_slurm(folder, workload="box", env=env) as training:
        if not training.slurm.has_separate_nodes:
            pytest.skip("this machine refuses namespaces")
        box = training.shared / "training" / "box"
        shutil.copytree(TINY, box)
        (box / "prepare.sh").write_text(PREPARE)
        (box / "finish.sh").write_text(FINISH)
        yield training


def settings(training: Training, run: str) -> dict[str, str]:
    (file,) = training.run_dir(run).glob("settings-*.env")
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_a_workload_trains_in_a_container(training: Training, image: Path) -> None:
    said = training.run("inside", MAX_STEPS="8", SCRATCH="/tmp")
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    assert f"copied {image} (" in said, "each node has a /tmp of its own, and finds the image there"
    seen = (training.run_dir("inside") / "seen").read_text().splitlines()
    # The root is the image's; all owners but the user are nobody, of whom root is none here.
    assert seen[0] == str(os.getuid())
    assert "/etc/image-of-the-rehearsal" in seen
    steps, of_image, path, workdir = seen[-4:]
    # The job's settings win over the image's, which win over the node's.
    assert (steps, of_image, path) == ("8", "the rehearsal", "/usr/local/bin:/usr/bin:/bin")
    assert workdir == str(training.run_dir("inside"))
    assert "finished in the rehearsal" in said
    assert "there is no torch" in said
    rows = training.metrics("inside")
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert {row["world_size"] for row in rows} == {2}
    kept = settings(training, "inside")
    assert kept["CONTAINER_IMAGE"] == kept["CONTAINER_FILE"] == str(image)
    assert kept["CONTAINER_DIGEST"] == f"sha256:{digest}"
    assert kept["CONTAINER_BYTES"] == str(image.stat().st_size)
    (venv,) = filter(Path.is_dir, (training.run_dir("inside").parents[2].parent / "venvs").iterdir())
    assert venv.name == f"box-{digest[:12]}-{os.getuid()}"
    outside = training.run(
        "outside", MAX_STEPS="8", CONTAINER_IMAGE="", TRAINING_VENVS=str(venv.parent / "host")
    )
    assert "container" not in outside
    assert [row["loss"] for row in training.metrics("outside")] == [row["loss"] for row in rows]


def test_plain_srun_runs_in_a_container(training: Training, image: Path) -> None:
    command = f"ls /etc/image-of-the-rehearsal && ! test -e {TINY} && echo node $SLURM_NODEID"
    done = subprocess.run(
        ["srun", "-N", "2", f"--container-image={image}", "bash", "-c", command],
        env=training.slurm.client_env(),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["/etc/image-of-the-rehearsal"] * 2 + ["node 0", "node 1"]


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # roberta's environment compiles for minutes
@pytest.mark.parametrize("workload", ["gpt2", "bert-trainium", "gpt2-megatron", "roberta", "titan"])
def test_each_workloads_losses_are_equal_in_a_container(tmp_path: Path, workload: str) -> None:
    text = "DATA" if workload == "titan" else "CORPUS"
    env = {text: "raw", "MAX_STEPS": "6", "CHECKPOINT_EVERY": "3", "WARMUP_STEPS": "2", **WITH_SHIMS}
    with training_on_slurm(tmp_path, workload=workload, env=env) as training:
        raw = training.shared / "datasets" / workload / "raw"
        raw.mkdir(parents=True)
        pages = [page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))]
        sections = [section for page in pages for section in page.split("\n## ")]
        (raw / "docs.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in sections))
        training.wait(training.submit("outside"), state="COMPLETED", timeout_s=1500)
        own = make_image(IMAGES, environment=training.python.parents[1], say=print)
        said = training.run(
            "inside",
            CONTAINER_IMAGE=str(own),
            CONTAINER_MOUNTS=f"{SHIMS}:{SHIMS}:ro",
            TRAINING_VENVS=str(tmp_path / "venvs"),  # an environment that is made now says so
        )
        assert "container: torch 2." in said
        assert "the image's own; Python 3." in said
        assert losses(training.metrics("inside")) == losses(training.metrics("outside"))
        assert len(training.metrics("inside")) == 6
        assert {row["world_size"] for row in training.metrics("inside")} == {2}


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # the environment of the outer job, and three jobs whose nodes unpack an image
def test_the_network_is_judged_in_a_container(tmp_path: Path) -> None:
    env = {"MIN_BYTES": "1024", "MAX_BYTES": "65536"}
    with training_on_slurm(tmp_path, workload="nccl-tests", env=env) as training:
        training.run("outside")
        own = str(make_image(IMAGES, environment=training.python.parents[1], say=print))
        # An environment that is made now says so.
        said = training.run("inside", CONTAINER_IMAGE=own, TRAINING_VENVS=str(tmp_path / "venvs"))
        assert "container: torch 2." in said
        assert "all-reduce as it should be: 2 nodes, 2 ranks" in said
        sizes = [[row["message_bytes"] for row in training.metrics(run)] for run in ("inside", "outside")]
        assert sizes == [[1024 * 2**i for i in range(7)]] * 2
        # A container has no program of the node's.
        gpu = {"DEVICE": "gpu", "TRAINING_REHEARSAL": "0", "MEASURE_WITH": "nccl-tests"}
        said = training.wait(training.submit("missing", CONTAINER_IMAGE=own, **gpu), state="FAILED")
        assert "has no all_reduce_perf" in said
