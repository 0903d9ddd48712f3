"""Names of container images and NOTIFY: what is refused, with one message, and what enroot is asked for."""

import subprocess

from tests.unit.assets.training.shell import bash, printed
from training_cluster.paths import TRAINING

DIGEST = "sha256:" + "0123456789abcdef" * 4
WRONG_NAMES = [
    ("nvcr.io/nvidia/pytorch 25.09", "has a blank in it"),
    ("https://nvcr.io/nvidia/pytorch:25.09-py3", "is the address of a page"),
    ("nvcr.io/NVIDIA/pytorch:25.09-py3", "has capital letters, which a repository cannot have"),
    ("nvcr.io/nvidia/pytorch:25:09", 'has ":25:09" where one :TAG belongs'),
    ("nvcr.io/nvidia/pytorch@sha256:12", "has a digest that is not sha256: and 64 digits"),
    ("me:secret@nvcr.io#nvidia/pytorch", "has a password in it"),
    ("nvcr_io#nvidia/pytorch", 'has "nvcr_io" where the host name of a registry belongs'),
    ("pytorch.sqsh", "is a file without its whole path, which begins with /"),
    ("/fsx/images/pytorch.tar", "is a path that does not end with .sqsh"),
    ("./Dockerfile", "is a recipe: build the image elsewhere"),
    ("dockerd://pytorch", "is an image of a Docker daemon, which no node has"),
    ("s3://bucket/pytorch.sqsh", "begins with s3://, which is none of: docker://"),
    ("/fsx/a,b.sqsh", "has a character that an image name cannot have"),
    ("nvcr.io/nvidia/$(id)", "has a character that an image name cannot have"),
    ("nvcr.io", "is the host name of a registry without an image"),
    ("nvcr.io/", 'has "" where the name of a repository belongs'),
    ("docker://docker://ubuntu", 'has "docker:" where the host name of a registry belongs'),
    ("ubuntu@latest", 'has "latest" after the @, where sha256: and 64 digits belong'),
    ("1234.dkr.ecr.us-east-1.amazonaws.com/a:1", "is in an ECR whose host does not begin with the 12"),
    ("localhost/mine:1", "is an image of one machine"),
    ("--container-image=x", 'has "--container-image=x" where the name of a repository belongs'),
]
ACCEPTED = [
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
]


def settings(**env: str) -> subprocess.CompletedProcess[str]:
    """Run what `trainctl submit` runs on a laptop, and job.slurm on a node."""
    return bash('exec bash "$1" gpt2', TRAINING / "job_settings.sh", **env)


def test_a_wrong_name_is_refused() -> None:
    for image, what in WRONG_NAMES:
        done = settings(CONTAINER_IMAGE=image)
        assert (done.returncode, done.stdout) == (1, "")
        first, second = done.stderr.splitlines()
        shown = image.replace("me:secret", "...")
        assert first.startswith(f"CONTAINER_IMAGE is '{shown}', which {what}"), first
        assert "secret" not in done.stderr
        assert second.startswith("  Type ")


def test_settings_that_exclude_a_container_are_refused() -> None:
    image = {"CONTAINER_IMAGE": "pytorch/pytorch"}
    for env, what in (
        ({"CONTAINER_MOUNTS": "/data:/data"}, "CONTAINER_MOUNTS is set, and CONTAINER_IMAGE is not."),
        (image | {"CONTAINER_MOUNTS": "data:/data"}, "CONTAINER_MOUNTS is 'data:/data', which is not a list"),
        (image | {"LAUNCHER": "mpirun"}, "mpirun starts its ranks outside of containers."),
    ):
        done = settings(**env)
        assert (done.returncode, done.stderr.startswith(what)) == (1, True), done.stderr


def test_notify_takes_the_word_and_no_address() -> None:
    for value in ("", "webhook", "mail"):
        assert settings(NOTIFY=value).returncode == 0
    for value, what in (
        ("sms", "NOTIFY is 'sms'; allowed: webhook, mail."),
        ("https://hooks.example.com/secret", "NOTIFY holds an address, which is a secret."),
    ):
        done = settings(NOTIFY=value)
        assert (done.returncode, what in done.stderr, "example.com" in done.stderr) == (1, True, False)


def test_without_notify_no_message_is_sent() -> None:
    script = f'training=/t; source "{TRAINING}/notify.sh"; find_python() {{ echo echo; }}; tell started text'
    for notify, calls in (("", ""), ("mail", "-I -B /t/run_module.py trainkit.notify started text\n")):
        assert printed(script, NOTIFY=notify) == calls


def test_names_of_docker_and_enroot_are_accepted() -> None:
    script = f'source "{TRAINING}/container_image.sh"; for n; do image_uri "$n"; image_file_name "$n"; done'
    lines = printed(script, *(image for image, _, _ in ACCEPTED)).splitlines()
    assert lines == [line for _, uri, file in ACCEPTED for line in (uri, f"{file}.sqsh")]
    for image in (*(image for image, _, _ in ACCEPTED), "/fsx/images/mine.sqsh"):
        done = settings(CONTAINER_IMAGE=image, CONTAINER_MOUNTS="/a:/b,/c:/d:ro")
        assert (done.returncode, done.stderr) == (0, "")


def test_two_images_never_share_a_file() -> None:
    names = ("nvcr.io/a/b:1", "nvcr.io/a:b", "a/b:1", "nvcr.io/a/b", f"nvcr.io/a/b@{DIGEST}")
    script = f'source "{TRAINING}/container_image.sh"; for name; do image_file_name "$name"; done'
    assert len(set(printed(script, *names).splitlines())) == len(names)
