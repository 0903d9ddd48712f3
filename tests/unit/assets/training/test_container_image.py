"""Names of container images: what is refused, with one message, and what enroot is asked for."""

import os
import subprocess

import pytest

from training_cluster.paths import TRAINING

DIGEST = "sha256:" + "0123456789abcdef" * 4


def settings(**env: str) -> subprocess.CompletedProcess[str]:
    """What `trainctl submit` runs on a laptop, and job.slurm on a node."""
    script = ["bash", str(TRAINING / "job_settings.sh"), "gpt2"]
    path = {"PATH": os.environ["PATH"]}
    return subprocess.run(script, env=path | env, capture_output=True, text=True, check=False)


def said_of(function: str, name: str) -> str:
    script = f'source "{TRAINING}/container_image.sh"; {function} "$1"'
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script, "test", name], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("image", "what"),
    [
        ("nvcr.io/nvidia/pytorch 25.09", "has a blank in it"),
        ("https://nvcr.io/nvidia/pytorch:25.09-py3", "is the address of a page"),
        ("nvcr.io/NVIDIA/pytorch:25.09-py3", "has capital letters, which a repository cannot have"),
        ("nvcr.io/nvidia/pytorch:", 'has ":" where one :TAG belongs'),
        ("nvcr.io/nvidia/pytorch:25:09", 'has ":25:09" where one :TAG belongs'),
        ("nvcr.io/nvidia/pytorch@sha256:12", "has a digest that is not sha256: and 64 digits"),
        ("me:secret@nvcr.io#nvidia/pytorch", "has a password in it"),
        ("nvcr_io#nvidia/pytorch", 'has "nvcr_io" where the host name of a registry belongs'),
        ("nvcr.io/", 'has "" where the name of a repository belongs'),
        ("pytorch.sqsh", "is a file without its whole path, which begins with /"),
        ("/fsx/images/pytorch.tar", "is a path that does not end with .sqsh"),
        ("./Dockerfile", "is a recipe: build the image elsewhere"),
        ("dockerd://pytorch", "is an image of a Docker daemon, which no node has"),
        ("s3://bucket/pytorch.sqsh", "begins with s3://, which is none of: docker://"),
        ("/fsx/a,b.sqsh", "has a character that an image name cannot have"),
        ("nvcr.io/nvidia/$(id)", "has a character that an image name cannot have"),
        ("nvcr.io", "is the host name of a registry without an image"),
        ("nvcr.io/", 'has "" where the name of a repository belongs'),
        ("nvcr.io//nvidia/pytorch", 'has "/nvidia/pytorch" where the name of a repository belongs'),
        ("docker://docker://ubuntu", 'has "docker:" where the host name of a registry belongs'),
        ("ubuntu@latest", 'has "latest" after the @, where sha256: and 64 digits belong'),
        ("ubuntu@sha512:aa", "has a digest that is not sha256: and 64 digits"),
        ("1234.dkr.ecr.us-east-1.amazonaws.com/a:1", "is in an ECR whose host does not begin with the 12"),
        ("localhost/mine:1", "is an image of one machine"),
        ("ubuntu.sqsh:latest", "is the host name of a registry without an image, or a file without its path"),
        ("~/mine.sqsh", "is a file without its whole path, which begins with /"),
        ("--container-image=x", 'has "--container-image=x" where the name of a repository belongs'),
        ("/fsx/images/mine.SQSH", "is a path that does not end with .sqsh"),
    ],
)
def test_a_wrong_name_is_refused_with_one_message(image: str, what: str) -> None:
    done = settings(CONTAINER_IMAGE=image)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith(f"CONTAINER_IMAGE is '{image.replace('me:secret', '...')}', which {what}"), first
    assert "secret" not in done.stderr
    assert second.startswith("  Type ")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("env", "what"),
    [
        ({"CONTAINER_MOUNTS": "/data:/data"}, "CONTAINER_MOUNTS is set, and CONTAINER_IMAGE is not."),
        (
            {"CONTAINER_IMAGE": "pytorch/pytorch", "CONTAINER_MOUNTS": "data:/data"},
            "CONTAINER_MOUNTS is 'data:/data', which is not a list of FOLDER:FOLDER-IN-THE-CONTAINER.",
        ),
        (
            {"CONTAINER_IMAGE": "pytorch/pytorch", "LAUNCHER": "mpirun"},
            "mpirun starts its ranks outside of containers.",
        ),
    ],
)
def test_settings_that_exclude_a_container_are_refused(env: dict[str, str], what: str) -> None:
    done = settings(**env)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, what)


@pytest.mark.parametrize(
    ("image", "uri", "file"),
    [
        ("ubuntu", "docker://ubuntu", "ubuntu+latest"),
        ("nvidia/cuda:13.0.1", "docker://nvidia/cuda:13.0.1", "nvidia+cuda+13.0.1"),
        ("nvcr.io#nvidia/pytorch:25", "docker://nvcr.io#nvidia/pytorch:25", "nvcr.io+nvidia+pytorch+25"),
        ("nvcr.io/nvidia/pytorch:25", "docker://nvcr.io#nvidia/pytorch:25", "nvcr.io+nvidia+pytorch+25"),
        ("docker.io/library/ubuntu:24.04", "docker://library/ubuntu:24.04", "library+ubuntu+24.04"),
        ("docker://me@index.docker.io/me/x:1", "docker://me@me/x:1", "me+x+1"),
        ("docker://me@ghcr.io/me/a_b", "docker://me@ghcr.io#me/a_b", "ghcr.io+me+a_b+latest"),
        ("localhost:5000/mine:1", "docker://localhost:5000#mine:1", "localhost+5000+mine+1"),
        (
            "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:V1",
            "docker://123456789012.dkr.ecr.us-east-1.amazonaws.com#team/train:V1",
            "123456789012.dkr.ecr.us-east-1.amazonaws.com+team+train+V1",
        ),
        (f"ubuntu:24.04@{DIGEST}", f"docker://ubuntu@{DIGEST}", f"ubuntu+{DIGEST.partition(':')[2]}"),
    ],
)  # fmt: skip
def test_a_name_in_dockers_or_enroots_form_is_accepted(image: str, uri: str, file: str) -> None:
    done = settings(CONTAINER_IMAGE=image)
    assert (done.returncode, done.stderr) == (0, "")
    assert said_of("image_uri", image) == uri
    assert said_of("image_file_name", image) == f"{file}.sqsh"


def test_a_file_is_accepted_by_its_path() -> None:
    assert (
        settings(CONTAINER_IMAGE="/fsx/images/mine.sqsh", CONTAINER_MOUNTS="/a:/b,/c:/d:ro").returncode == 0
    )


def test_two_images_never_share_a_file() -> None:
    names = ("nvcr.io/a/b:1", "nvcr.io/a:b", "a/b:1", "nvcr.io/a/b", f"nvcr.io/a/b@{DIGEST}")
    assert len({said_of("image_file_name", name) for name in names}) == len(names)
