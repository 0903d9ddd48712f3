"""A throw-away machine: a disk of its own, entered through namespaces for each command."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rehearsal.containers.base import FOLDER, make_base
from tests.slow.node_root.disk import Disk, new_disk

_ENTER = Path(__file__).with_name("enter.sh")
# The environment of cloud-init.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}

Finished = subprocess.CompletedProcess[str]
_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")
_VARIABLES = re.compile(
    r"(?i:(http|https|no|all)_proxy)|PIP_(?!CACHE).+|.+_CA_BUNDLE|SSL_CERT_FILE|GIT_SSL_CAINFO"
)
_LOCAL = re.compile(r"(?:^|[\s=]|(file://))(/[^\s:]+)")


@dataclass(frozen=True, kw_only=True)
class Egress:
    """Environment and files that a throw-away machine inherits from this one."""

    environment: dict[str, str]
    places: tuple[Path, ...]
    """Files and folders that it sees at the same paths."""


@cache
def egress() -> Egress:
    """Read it from this machine's settings, which may also name folders, such as package folders."""
    environment = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    settings = [Path("/etc/pip.conf"), Path.home() / ".config" / "pip" / "pip.conf"]
    named = {Path(path) for path in _FILES}
    for text in (*environment.values(), *(path.read_text() for path in settings if path.is_file())):
        # The pages of an index link to files next to their own folder.
        named.update(Path(path).parent if url else Path(path) for url, path in _LOCAL.findall(text))
    named.update(settings)
    places = tuple(sorted(path for path in named if path.exists()))
    return Egress(environment=environment, places=places)


_NOTHING = Egress(environment={}, places=())


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that runs one command at a time, and is off between commands.

    Args:
        shown: folders of this machine, by their path in it; it may write to them.
    """

    disk: Disk
    hostname: str
    shown: Mapping[str, Path] = field(default_factory=dict)

    def command(self, *command: str, network: bool = True) -> list[str]:
        """Return the command, for FOLDER, that runs `command` in the machine and ends all processes in it.

        Args:
            network: True for this machine's network, False for no interface at all.
        """
        out = egress() if network else _NOTHING
        places = [part for place in out.places for part in (str(place), str(place), "ro")]
        places += [part for there, here in self.shown.items() for part in (str(here), there, "rw")]
        environment = _ENVIRONMENT | out.environment
        return [
            *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *("--ipc", "--uts", *(() if network else ("--net",))),
            *("bash", str(_ENTER), *self.disk.arguments(), self.hostname, *places, "--"),
            *("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command),
        ]

    def run(self, *command: str, network: bool = True, timeout_s: int = 120) -> Finished:
        """Run a command until it ends or its time is over. The caller checks its status."""
        return subprocess.run(
            self.command(*command, network=network),
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


@contextmanager
def new_machine(
    *,
    made_from: Disk | None = None,
    hostname: str = "machine",
    shown: Mapping[str, Path] | None = None,
    layered: bool | None = None,
    say: Callable[[str], None] = print,
) -> Iterator[Machine]:
    """Create a machine with the base system, or with another one's disk, until the end of the block.

    Raises:
        NoRootError: machines cannot be made here; the message has the reason.
    """
    lower_layers = made_from.layers if made_from else (make_base(say),)
    with new_disk(lower_layers, layered=layered) as disk:
        yield Machine(disk=disk, hostname=hostname, shown=shown or {})
