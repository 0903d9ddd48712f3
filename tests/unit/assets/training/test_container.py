"""Import of an image by job.slurm: once, under a lock, whole or not at all. Enroot is played."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.training.waiting import LONG_S, read_until, until, wait_until
from training_cluster.paths import TRAINING

SCRIPT = f"""\
set -euo pipefail
log() {{ printf 'log: %s\\n' "$*" >&2; }}
die() {{ printf 'die: %s\\n  %s\\n' "$1" "$2" >&2; exit 1; }}
training={TRAINING} workload=gpt2
source "$training/job_settings.sh"
source "$training/environment.sh"
source "$training/container.sh"
find_container
set_program
printf '%s\\n' "$CONTAINER_FILE" "$CONTAINER_DIGEST" "$CONTAINER_BYTES" "${{container[@]}}" \\
  >"$RUN_DIR/options"
"""
ENROOT = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$ROOT/calls"
case $1 in
  version) printf '%s\\n' "${ENROOT_VERSION:-4.1.2}" ;;
  import)
    printf '[INFO] Fetching image manifest\\n' >&2
    printf half >"$3"
    if [[ -n ${HELD:-} ]]; then UNTIL; fi
    if [[ -n ${IMPORT_FAILS:-} ]]; then
      printf '[ERROR] URL %s returned error code: 401 Unauthorized\\n' "$4" >&2
      exit 1
    fi
    printf 'hsqs the image' >"$3"
    ;;
esac
""".replace("UNTIL", until("$ROOT/go"))
SRUN = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$ROOT/srun"
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
            "TRAINING_REHEARSAL": "1",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURMD_NODENAME": "train-1",
            "CONTAINER_IMAGE": "nvcr.io/nvidia/pytorch:25",
            "IMPORT_NEWS_S": "0",
            "IMPORT_LOOK_S": "0.05",
        }

    def begin(self, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", SCRIPT],
            env=self.env | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, **env: str) -> tuple[int, str]:
        began = self.begin(**env)
        _, said = began.communicate(timeout=LONG_S)
        return began.returncode, said

    @property
    def file(self) -> Path:
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        return self.shared / "images" / user / "nvcr.io+nvidia+pytorch+25.sqsh"

    def options(self) -> list[str]:
        return (self.root / "run" / "options").read_text().splitlines()

    def imports(self) -> list[str]:
        return [line for line in (self.root / "calls").read_text().splitlines() if line.startswith("import")]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_an_image_is_imported_once_with_its_digest_and_read_by_its_user_alone(job: Job) -> None:
    began = job.begin(HELD="1")
    said = read_until(began, "MiB of the image are written")
    (job.root / "go").touch()
    said += began.communicate(timeout=LONG_S)[1]
    assert began.returncode == 0, said
    assert "log: importing docker://nvcr.io#nvidia/pytorch:25 (minutes, once)" in said
    assert job.file.read_bytes() == b"hsqs the image"
    assert job.file.parent.stat().st_mode & 0o777 == 0o700
    digest = hashlib.sha256(job.file.read_bytes()).hexdigest()
    file, found, size, *options = job.options()
    assert (file, found, size) == (str(job.file), f"sha256:{digest}", "14")
    assert f"--container-image={job.file}" in options
    assert "--container-name=train-7-0" in options
    assert f"--container-mounts={job.shared}:{job.shared}" in options
    code, said = job.run(SLURM_JOB_ID="8")
    assert code == 0, said
    assert "log: the image was imported on" in said
    assert len(job.imports()) == 1


def test_two_jobs_import_an_image_once(job: Job) -> None:
    first = job.begin(HELD="1")
    wait_until(lambda: list(job.file.parent.glob("*.partial.7")), what="the first job does not import")
    second = job.begin(SLURM_JOB_ID="8")
    read_until(second, "log: another job imports docker://nvcr.io#nvidia/pytorch:25: waiting for it")
    (job.root / "go").touch()
    said = [process.communicate(timeout=LONG_S)[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert len(job.imports()) == 1


def test_a_job_that_is_cancelled_while_it_imports_reports_no_wrong_image(job: Job) -> None:
    began = job.begin(HELD="1")
    read_until(began, "MiB of the image are written")
    began.terminate()
    said = began.communicate(timeout=LONG_S)[1]
    assert (began.returncode, "was not imported" in said) == (143, False), said
    assert {path.name for path in job.file.parent.iterdir()} == {f"{job.file.name}.lock"}


def test_a_failed_import_leaves_nothing_and_says_what_to_look_at(job: Job) -> None:
    code, said = job.run(IMPORT_FAILS="1")
    assert code == 1
    assert "returned error code: 401 Unauthorized" in said
    assert "die: the image nvcr.io/nvidia/pytorch:25 was not imported: see the lines of enroot above." in said
    assert "trainctl registry login nvcr.io" in said
    assert {path.name for path in job.file.parent.iterdir()} == {f"{job.file.name}.lock"}
    assert job.run()[0] == 0


def test_an_image_whose_content_changed_has_another_digest(job: Job) -> None:
    job.run()
    before = job.options()[1]
    job.file.write_bytes(b"hsqs another one")
    code, said = job.run()
    assert code == 0, said
    assert "computing the digest" in said
    assert job.options()[1] != before


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CONTAINER_IMAGE": "/fsx/none.sqsh"}, "there is no image /fsx/none.sqsh that"),
        ({"CONTAINER_IMAGE": "{root}/fsx/text.sqsh"}, "is not a squashfs image."),
        ({"NO_PYXIS": "1"}, "this Slurm has no --container-image: Pyxis is not enabled."),
        (
            {"CONTAINER_IMAGE": f"{ECR}/team/train:1", "ENROOT_VERSION": "3.4.1"},
            "cannot read images of Amazon ECR, which requires Enroot 4.0 or newer.",
        ),
    ],
)
def test_what_cannot_run_ends_the_job_with_one_message(job: Job, env: dict[str, str], said: str) -> None:
    (job.shared / "text.sqsh").write_text("text")
    code, stderr = job.run(**{name: value.format(root=job.root) for name, value in env.items()})
    assert code == 1
    died = [line for line in stderr.splitlines() if line.startswith("die: ")]
    assert len(died) == 1, stderr
    assert said in died[0]
    assert stderr.splitlines()[-1].startswith("  ")


def test_an_image_among_the_datasets_is_reported(job: Job) -> None:
    image, link = job.shared / "datasets" / "x.sqsh", job.shared / "x.sqsh"
    image.parent.mkdir()
    image.write_bytes(b"hsqs the image")
    link.symlink_to(image)
    for path in (image, link):
        code, said = job.run(CONTAINER_IMAGE=str(path))
        assert code == 0, said
        assert f"the image {path} is in {job.shared}/datasets, where every job can write" in said


def test_a_node_without_enroot_says_so(job: Job) -> None:
    (job.root / "bin" / "enroot").unlink()
    code, said = job.run(PATH=f"{job.root}/bin:/usr/bin:/bin")
    if Path("/usr/bin/enroot").exists():
        pytest.skip("this machine has enroot")
    assert code == 1
    assert "has no enroot, so it starts no containers." in said


def test_ecr_gets_the_nodes_role_for_every_import(job: Job) -> None:
    code, said = job.run(CONTAINER_IMAGE=f"{ECR}/team/train:1")
    assert code == 0, said
    credentials = (job.root / "home" / ".config" / "enroot" / ".credentials").read_text()
    assert (
        credentials == f"machine {ECR} login AWS password $(aws ecr get-login-password --region us-east-1)\n"
    )


@pytest.mark.parametrize(
    ("env", "visible"),
    [
        ({"ACCELERATOR_KIND": "gpu"}, "all"),
        ({"ACCELERATOR_KIND": "gpu", "DEVICE": "cpu"}, "void"),
        ({"ACCELERATOR_KIND": "none"}, "void"),
        ({"ACCELERATOR_KIND": "gpu", "NVIDIA_VISIBLE_DEVICES": "0,1"}, "0,1"),
    ],
)
def test_gpus_are_asked_for_where_there_are_some(job: Job, env: dict[str, str], visible: str) -> None:
    script = f'{SCRIPT}\nprintf "%s" "$NVIDIA_VISIBLE_DEVICES"'
    done = subprocess.run(
        ["bash", "-c", script], env=job.env | env, capture_output=True, text=True, check=True
    )
    assert done.stdout == visible


def test_the_jobs_variables_are_kept_but_for_those_that_name_places(job: Job) -> None:
    places = {"PYTHONPATH": "/x", "LD_LIBRARY_PATH": "", "CUDA_HOME": "/usr/local/cuda"}
    job.run(NCCL_DEBUG="INFO", MAX_STEPS="8", TWO_LINES="a\nb", HF_TOKEN="secret", **places)
    (names,) = (each for each in job.options() if each.startswith("--container-env="))
    kept = set(names.partition("=")[2].split(","))
    assert {"NCCL_DEBUG", "MAX_STEPS", "HF_TOKEN", "RUN_DIR", "CONTAINER_DIGEST"} <= kept
    assert not kept & {
        "PATH",
        "HOME",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "CUDA_HOME",
        "TWO_LINES",
        "SLURM_JOB_ID",
    }
    assert "secret" not in names


def test_without_an_image_nothing_changes(job: Job) -> None:
    script = SCRIPT.replace('"$CONTAINER_FILE" "$CONTAINER_DIGEST" "$CONTAINER_BYTES" ', "")
    done = subprocess.run(
        ["bash", "-c", f'{script}\nprintf "%s|" "${{one_node[@]}}" "${{program[@]}}"'],
        env=job.env | {"CONTAINER_IMAGE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("bash|", "")
    assert not (job.root / "calls").exists()
    assert list(job.shared.iterdir()) == []
