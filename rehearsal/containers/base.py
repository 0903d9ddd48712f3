"""The base system of containers here and of the tests' throw-away machines, from the mirror that apt uses."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

FOLDER = ROOT / ".cache" / "node-root"
CLUSTER_USER = "ubuntu"

# Packages of ParallelCluster's images that the bootstrap steps use. Python has no venv, as in those images.
PACKAGES = (
    *("ca-certificates", "curl", "iproute2", "jq", "kmod", "openssl", "pciutils", "procps", "python3"),
    *("systemd", "unzip", "xz-utils", "zstd"),
)
# Documentation is not needed there, and a lost write does not matter.
_DPKG = ("force-unsafe-io", *(f"path-exclude=/usr/share/{folder}/*" for folder in ("doc", "info", "man")))
_APT_SETTINGS = re.compile(r"Acquire::(https?::Proxy|Check-Valid-Until|Check-Date|Retries)\b.*\"\S")
_STAMP = ".made"


class NoRootError(RehearsalError):
    """Throw-away machines cannot be made here; the message has the reason."""


def check_machine() -> None:
    """Check that throw-away machines work here, before anything is created.

    Raises:
        NoRootError: not root, or a tool is missing.
    """
    if os.geteuid() != 0:
        raise NoRootError(
            "A throw-away machine needs root's rights (mounts, chroot, packages). Be root in a machine or "
            "container of your own, and type: make test"
        )
    for program in ("mmdebstrap", "unshare", "setpriv", "apt-get"):
        if not shutil.which(program):
            raise NoRootError(f"{program} is missing here. On Debian or Ubuntu type: make setup")


def make_base(say: Callable[[str], None]) -> Path:
    """Make the base system unless it exists; return its folder, which nobody must write to.

    Raises:
        NoRootError: it cannot be made here; the message has the reason.
    """
    check_machine()
    sources = _sources()
    base = FOLDER / f"base-{_key(sources)}"
    with _locked():
        if not (base / _STAMP).exists():
            _make(base, sources, say)
    return base


def _sources() -> list[str]:
    """Return lines of a sources.list: the distribution's own sources, as apt is configured here."""
    wanted = "$(ORIGIN)\t$(REPO_URI) $(RELEASE) $(COMPONENT)"
    found = set()
    for line in _asked("apt-get", "indextargets", "--format", wanted, "Identifier: Packages"):
        origin, source = line.split("\t")
        if origin in ("Debian", "Ubuntu"):
            found.add(f"deb {source}")
    if not found:
        raise NoRootError(
            "apt has no list of packages of Debian or Ubuntu here. "
            "If this is one of them, type: apt-get update"
        )
    return sorted(found)


def _settings() -> list[str]:
    """Return apt's settings of this machine for downloads: its proxy, and whether it accepts old lists."""
    return [line for line in _asked("apt-config", "dump") if _APT_SETTINGS.match(line)]


def _asked(*command: str) -> list[str]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def _release() -> str:
    """Return the distribution's release of this machine, such as bookworm."""
    settings = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    return settings["VERSION_CODENAME"].strip('"')


def _key(sources: list[str]) -> str:
    made_from = "\n".join((Path(__file__).read_text(), _release(), *sources, *_settings()))
    return hashlib.sha256(made_from.encode()).hexdigest()[:16]


@contextmanager
def _locked() -> Iterator[None]:
    """Hold the lock while the base system is made; other processes wait and then find it complete."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(base: Path, sources: list[str], say: Callable[[str], None]) -> None:
    """Remove older and incomplete ones, make a new one in another folder, and move it when complete."""
    for other in (*FOLDER.glob("base-*"), *FOLDER.glob(".making-*")):
        shutil.rmtree(other)
    making = FOLDER / f".making-{base.name}"
    say(f"making the base system of throw-away machines ({_release()}): about a minute, once")
    command = [
        # Its mounts and processes end with the command, and the command ends with this process.
        *(
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ),
        *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", "--skip=output/dev"),
        f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt={option}" for option in _DPKG),
        *(f"--aptopt={setting}" for setting in _settings()),
        f'--customize-hook=chroot "$1" useradd --create-home --shell /bin/bash {CLUSTER_USER}',
        *(_release(), str(making), *sources),
    ]
    said: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as maker:
        assert maker.stdout
        for line in maker.stdout:
            said.append(line.rstrip())
            if line.startswith(("I:", "E:")):
                say(line[2:].strip())
    if maker.returncode:
        shutil.rmtree(making, ignore_errors=True)
        raise NoRootError("\n".join(("The base system could not be made:", *said[-10:])))
    (making / _STAMP).touch()
    making.rename(base)
