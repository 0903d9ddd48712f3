"""A throw-away machine: a disk of its own, entered through namespaces for one command after another."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.node_root.base import FOLDER, make_base
from rehearsal.node_root.disk import Disk, new_disk
from rehearsal.node_root.way_out import WayOut, way_out

_ENTER = Path(__file__).with_name("enter.sh")
_NOTHING = WayOut(environment={}, places=())
# As cloud-init has it.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}

Finished = subprocess.CompletedProcess[str]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One that runs a command at a time; between two, it is as one that is switched off.

    Args:
        shown: folders here that it sees, by their path there; it may write to them.
    """

    disk: Disk
    hostname: str
    shown: Mapping[str, Path] = field(default_factory=dict)

    def command(self, *command: str, network: bool = True) -> list[str]:
        """The command here that runs one there, to be run in FOLDER; all in there ends with its process.

        Args:
            network: this machine's; otherwise there is no interface at all.
        """
        out = way_out() if network else _NOTHING
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
        """Run a command to its end, or to the end of the time. Its status is the caller's to judge."""
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
    """A machine with the base system, or with what another one left on its disk, until the end of the block.

    Raises:
        NoRootError: there can be none here; the message says why.
    """
    beneath = made_from.layers if made_from else (make_base(say),)
    with new_disk(beneath, layered=layered) as disk:
        yield Machine(disk=disk, hostname=hostname, shown=shown or {})
