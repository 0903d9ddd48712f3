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
        )

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_password_is_stored_and_never_shown(home: Home) -> None:
    done = home.run("login", "ghcr.io", "me", password="tok-1\n")
    assert (done.returncode, done.stderr, "tok-1" in done.stdout) == (0, "", False)
    assert home.lines() == ["machine ghcr.io login me password tok-1"]
    assert [each.stat().st_mode & 0o777 for each in (home.file, home.file.parent)] == [0o600, 0o700]
    home.run("login", "quay.io", "me", password="tok-2")
    home.run("login", "ghcr.io", "you", password="tok-3")
    assert home.lines() == [
        "machine quay.io login me password tok-2",
        "machine ghcr.io login you password tok-3",
    ]
    assert home.run("list").stdout == "quay.io me\nghcr.io you\n"
    home.run("logout", "quay.io")
    assert home.run("list").stdout == "ghcr.io you\n"
    assert list(home.file.parent.glob(".credentials.??????")) == []


def test_each_host_of_a_registry_has_its_line(home: Home) -> None:
    for host, user, hosts in (
        ("nvcr.io", "$oauthtoken", ["nvcr.io", "authn.nvidia.com"]),
        ("docker.io", "me", ["registry-1.docker.io", "auth.docker.io"]),
        ("registry.gitlab.com", "me", ["registry.gitlab.com", "gitlab.com"]),
        ("registry.example.com:5000", "me", ["registry.example.com"]),
    ):
        done = home.run("login", host, *([] if host == "nvcr.io" else [user]), password="tok\n")
        assert done.returncode == 0, done.stderr
        assert home.lines() == [f"machine {each} login {user} password tok" for each in hosts]
        home.run("logout", host)
        assert home.lines() == []


def test_ecr_gets_a_command_and_no_password(home: Home) -> None:
    assert home.run("login", ECR).returncode == 0
    home.run("add-ecr", ECR)
    line = f"machine {ECR} login AWS password $(aws ecr get-login-password --region eu-west-2)"
    assert home.lines() == [line]


def test_wrong_words_change_nothing(home: Home) -> None:
    home.run("login", "quay.io", "me", password="kept")
    for words, password, message in (
        ("login https://nvcr.io", "t", "'https://nvcr.io' is not a host name of a registry."),
        ("login nvcr", "t", "'nvcr' is not a host name of a registry."),
        ("login ghcr.io", "t", "the user of ghcr.io is missing."),
        ("login ghcr.io me", "", "the password is empty, or has a blank in it."),
        ("login ghcr.io me", "a b", "the password is empty, or has a blank in it."),
        ("login ghcr.io me", "$(id)", "the password begins with $, which enroot would run"),
        ("logon ghcr.io", "t", "'logon' is not one of login, logout, list."),
    ):
        done = home.run(*words.split(), password=password)
        first, second = done.stderr.splitlines()
        assert (done.returncode, first.startswith(f"registry: {message}"), second[:2]) == (1, True, "  ")
        assert home.lines() == ["machine quay.io login me password kept"]
