"""Import of an image by job.slurm: once, under a lock, whole or not at all. Enroot is played."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.training.shell import JOB
from tests.unit.assets.training.waiting import LONG_S, read_until, until
from training_cluster.paths import TRAINING

SCRIPT = f"""\
set -euo pipefail
{JOB}
workload=gpt2
source "$training/job_settings.sh"
source "$training/environment.sh"
source "$training/nodes.sh"
source "$training/container.sh"
well=(gpu-1)
find_container
set_program
printf '%s\\n' "${{CONTAINER_FILE-}}" "${{CONTAINER_DIGEST-}}" "${{CONTAINER_BYTES-}}" \\
  "${{NVIDIA_VISIBLE_DEVICES-}} ${{NVIDIA_DRIVER_CAPABILITIES-}}" "${{one_node[@]}}" "${{program[@]}}" \\
  >"$RUN_DIR/options"
"""
ENROOT = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$ROOT/calls"
case $1 in
  version) printf '%s\\n' "${ENROOT_VERSION:-4.1.2}" ;;
  import)
    printf half >"$3"
    if [[ -n ${HELD:-} ]]; then UNTIL; fi
    if [[ -n ${IMPORT_FAILS:-} ]]; then exit 1; fi
    printf 'hsqs the image' >"$3"
    ;;
esac
""".replace("UNTIL", until("$ROOT/go"))
SRUN = """\
#!/usr/bin/env bash
if [[ $* == *--help* && -z ${NO_PYXIS:-} ]]; then echo '  --container-image=IMAGE'; fi
"""
ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


class Job:
    def __init__(self, root: Path) -> None:
        self.root, self.shared = root, root / "fsx"
        bin_ = root / "bin"
        for folder in (bin_, self.shared, root / "run", root / "home"):
            folder.mkdir()
        for name, text in (("enroot", ENROOT), ("srun", SRUN), ("unsquashfs", "#!/bin/sh\n")):
            (bin_ / name).write_text(text)
            (bin_ / name).chmod(0o755)
        self.env = {
            "PATH": f"{bin_}:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "ROOT": str(root),
            "RUN_DIR": str(root / "run"),
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_VENVS": str(self.shared / "venvs"),
            "TRAINING_ETC": str(root),
            "TRAINING_REHEARSAL": "1",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURMD_NODENAME": "train-1",
            "CONTAINER_IMAGE": "nvcr.io/nvidia/pytorch:25",
            "IMPORT_NEWS_S": "0",
            "IMPORT_LOOK_S": "0.05",
        }

    def begin(self, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(["bash", "-c", SCRIPT], env=self.env | env, stderr=subprocess.PIPE, text=True)

    def run(self, **env: str) -> tuple[int, str]:
        began = self.begin(**env)
        _, output = began.communicate(timeout=LONG_S)
        return began.returncode, output

    @property
    def folder(self) -> Path:
        (folder,) = (self.shared / "images").iterdir()
        return folder

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def options(self) -> list[str]:
        return (self.root / "run" / "options").read_text().splitlines()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


FILE = "nvcr.io+nvidia+pytorch+25.sqsh"


def test_two_jobs_import_an_image_once(job: Job) -> None:
    first = job.begin(HELD="1")
    output = read_until(first, "MiB of the image are written")
    assert "importing docker://nvcr.io#nvidia/pytorch:25 (minutes, once)" in output
    second = job.begin(SLURM_JOB_ID="8")
    read_until(second, "another job imports docker://nvcr.io#nvidia/pytorch:25: waiting for it")
    (job.root / "go").touch()
    outputs = [process.communicate(timeout=LONG_S)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    code, output = job.run()
    assert (code, "the image was imported on" in output, "computing" in output) == (0, True, False), output
    assert [line.split()[0] for line in (job.root / "calls").read_text().splitlines()] == ["import"]
    image = job.folder / FILE
    assert job.folder.stat().st_mode & 0o777 == 0o700
    digest = hashlib.sha256(b"hsqs the image").hexdigest()
    assert job.options()[:3] == [str(image), f"sha256:{digest}", "14"]
    mounts = f"--container-mounts={job.shared}:{job.shared}"
    assert {f"--container-image={image}", "--container-name=train-7-0", mounts} <= set(job.options())
    image.write_bytes(b"hsqs another one")
    assert "computing the digest" in job.run()[1]
    assert job.options()[1] == f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"


def test_a_mounted_image_has_no_name(job: Job) -> None:
    """Pyxis unpacks the image of a container with a name, and mounts that of another."""
    for setting, says in (("", "each node unpacks its image"), (" use_squashfuse=1", "its image is mounted")):
        (job.root / "pyxis.conf").write_text(f"required spank_pyxis.so{setting}\n")
        code, output = job.run()
        assert (code, says in output) == (0, True), output
        assert any("--container-name" in option for option in job.options()) == (not setting)


def test_a_cancelled_import_blames_no_image(job: Job) -> None:
    began = job.begin(HELD="1")
    read_until(began, "MiB of the image are written")
    began.terminate()
    output = began.communicate(timeout=LONG_S)[1]
    assert (began.returncode, "was not imported" in output) == (143, False), output
    assert job.files() == {f"{FILE}.lock"}


def test_a_failed_import_leaves_nothing(job: Job) -> None:
    code, output = job.run(IMPORT_FAILS="1")
    assert (code, "the image nvcr.io/nvidia/pytorch:25 was not imported: " in output) == (1, True)
    assert "trainctl registry login nvcr.io" in output
    assert job.files() == {f"{FILE}.lock"}
    assert job.run()[0] == 0


def test_what_cannot_run_is_one_message(job: Job) -> None:
    (job.shared / "text.sqsh").write_text("text")
    for env, words in (
        ({"CONTAINER_IMAGE": "/fsx/none.sqsh"}, "there is no image /fsx/none.sqsh that"),
        ({"CONTAINER_IMAGE": f"{job.shared}/text.sqsh"}, "is not a squashfs image."),
        ({"NO_PYXIS": "1"}, "this Slurm has no --container-image: Pyxis is not enabled."),
        (
            {"CONTAINER_IMAGE": f"{ECR}/team/train:1", "ENROOT_VERSION": "3.4.1"},
            "cannot read images of Amazon ECR, which requires Enroot 4.0 or newer.",
        ),
    ):
        code, output = job.run(**env)
        died, how = output.splitlines()
        assert (code, died.startswith("die: "), words in died, how[:2]) == (1, True, True, "  "), output


def test_an_image_among_the_datasets_is_reported(job: Job) -> None:
    image, link = job.shared / "datasets" / "x.sqsh", job.shared / "x.sqsh"
    image.parent.mkdir()
    image.write_bytes(b"hsqs the image")
    link.symlink_to(image)
    for path in (image, link):
        output = job.run(CONTAINER_IMAGE=str(path))[1]
        assert f"the image {path} is in {job.shared}/datasets, where every job can write" in output


def test_ecr_gets_the_nodes_role(job: Job) -> None:
    assert job.run(CONTAINER_IMAGE=f"{ECR}/team/train:1")[0] == 0
    credentials = (job.root / "home" / ".config" / "enroot" / ".credentials").read_text()
    assert credentials.startswith(f"machine {ECR} login AWS password $(aws ecr ")


def test_gpus_are_visible_where_there_are_some(job: Job) -> None:
    for env, visible in (
        ({"ACCELERATOR_KIND": "gpu"}, "all compute,utility"),
        ({"ACCELERATOR_KIND": "gpu", "DEVICE": "cpu"}, "void "),
        ({"ACCELERATOR_KIND": "none"}, "void "),
        ({"ACCELERATOR_KIND": "gpu", "NVIDIA_VISIBLE_DEVICES": "0,1"}, "0,1 compute,utility"),
    ):
        job.run(**env)
        assert job.options()[3] == visible, env


def test_variables_that_name_places_stay_outside(job: Job) -> None:
    places = {"PYTHONPATH": "/x", "LD_LIBRARY_PATH": "", "CUDA_HOME": "/usr/local/cuda"}
    job.run(NCCL_DEBUG="INFO", TWO_LINES="a\nb", HF_TOKEN="secret", **places)
    (names,) = (each for each in job.options() if each.startswith("--container-env="))
    kept = set(names.partition("=")[2].split(","))
    assert {"NCCL_DEBUG", "HF_TOKEN", "RUN_DIR", "CONTAINER_DIGEST", "EFA_FLOOR"} <= kept
    assert not kept & {"PATH", "HOME", "TWO_LINES", "SLURM_JOB_ID", *places}
    assert "secret" not in names


def test_without_an_image_nothing_changes(job: Job) -> None:
    assert job.run(CONTAINER_IMAGE="") == (0, "")
    assert job.options() == ["", "", "", " ", "bash"]
    assert list(job.shared.iterdir()) == []


def test_a_container_computes_with_the_jobs_threads(tmp_path: Path) -> None:
    """Enroot's hook for PyTorch images sets one thread in a step of several tasks a node."""
    script = tmp_path / "train.sh"
    script.write_text("echo ${OMP_NUM_THREADS-unset}\n")
    for given, threads in (("", "unset"), ("6", "6")):
        env = {"PATH": "/usr/bin:/bin", "CONTAINER_ROOT": str(tmp_path), "OMP_NUM_THREADS": "1"}
        env["JOB_OMP_NUM_THREADS"] = given
        inside = ["bash", str(TRAINING / "inside.sh"), str(script)]
        assert subprocess.run(inside, env=env, capture_output=True, text=True).stdout == f"{threads}\n"


def test_a_node_without_cards_reports_no_network(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text("PRETTY_NAME=System\n")
    (tmp_path / "prepare.sh").write_text("")
    env = {"PATH": "/usr/bin:/bin", "CONTAINER_ROOT": str(tmp_path)}
    inside = ["bash", str(TRAINING / "inside.sh"), str(tmp_path / "prepare.sh")]
    result = subprocess.run(inside, env=env, capture_output=True, text=True)
    assert (result.returncode, ", System on the" in result.stderr, "EFA" in result.stderr) == (0, True, False)
