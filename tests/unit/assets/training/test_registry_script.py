"""Passwords for registries, in the file that Enroot reads: registry.sh, as the user on the head node."""

import os
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

ECR = "123456789012.dkr.ecr.eu-west-2.amazonaws.com"


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / ".config" / "enroot" / ".credentials"

    def run(self, *words: str, password: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", TRAINING / "registry.sh", *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            input=password,
            capture_output=True,
            text=True,
            check=False,
        )

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_password_is_stored_for_its_user_alone_and_never_shown(home: Home) -> None:
    done = home.run("login", "ghcr.io", "me", password="tok-1\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tok-1" not in done.stdout
    assert home.lines() == ["machine ghcr.io login me password tok-1"]
    assert home.file.stat().st_mode & 0o777 == 0o600
    assert home.file.parent.stat().st_mode & 0o777 == 0o700
    home.run("login", "quay.io", "me", password="tok-2")
    home.run("login", "ghcr.io", "you", password="tok-3")
    assert home.lines() == [
        "machine quay.io login me password tok-2",
        "machine ghcr.io login you password tok-3",
    ]
    listed = home.run("list")
    assert listed.stdout == "quay.io me\nghcr.io you\n"
    home.run("logout", "quay.io")
    assert home.run("list").stdout == "ghcr.io you\n"
    assert list(home.file.parent.glob(".credentials.??????")) == []


@pytest.mark.parametrize(
    ("host", "user", "hosts"),
    [
        ("nvcr.io", "$oauthtoken", ["nvcr.io", "authn.nvidia.com"]),
        ("docker.io", "me", ["registry-1.docker.io", "auth.docker.io"]),
        ("registry.gitlab.com", "me", ["registry.gitlab.com", "gitlab.com"]),
        ("registry.example.com:5000", "me", ["registry.example.com"]),
    ],
)
def test_each_host_that_enroot_asks_has_its_line(home: Home, host: str, user: str, hosts: list[str]) -> None:
    done = home.run("login", host, *([] if host == "nvcr.io" else [user]), password="tok\n")
    assert done.returncode == 0, done.stderr
    assert home.lines() == [f"machine {each} login {user} password tok" for each in hosts]
    home.run("logout", host)
    assert home.lines() == []


def test_ecr_gets_the_command_that_fetches_a_token_and_no_password(home: Home) -> None:
    assert home.run("login", ECR).returncode == 0
    home.run("add-ecr", ECR)
    line = f"machine {ECR} login AWS password $(aws ecr get-login-password --region eu-west-2)"
    assert home.lines() == [line]


@pytest.mark.parametrize(
    ("words", "password", "said"),
    [
        (("login", "https://nvcr.io"), "t", "'https://nvcr.io' is not a host name of a registry."),
        (("login", "nvcr"), "t", "'nvcr' is not a host name of a registry."),
        (("login", "ghcr.io"), "t", "the user of ghcr.io is missing."),
        (("login", "ghcr.io", "a b"), "t", "the user of ghcr.io is missing."),
        (("login", "ghcr.io", "me"), "", "the password is empty, or has a blank in it."),
        (("login", "ghcr.io", "me"), "a b", "the password is empty, or has a blank in it."),
        (("login", "ghcr.io", "me"), "$(id)", "the password begins with $, which enroot would run"),
        (("logon", "ghcr.io"), "t", "'logon' is not one of login, logout, list."),
    ],
)  # fmt: skip
def test_wrong_words_change_nothing(home: Home, words: tuple[str, ...], password: str, said: str) -> None:
    home.run("login", "quay.io", "me", password="kept")
    done = home.run(*words, password=password)
    first, second = done.stderr.splitlines()
    assert done.returncode == 1
    assert first.startswith(f"registry: {said}")
    assert second.startswith("  ")
    assert home.lines() == ["machine quay.io login me password kept"]
