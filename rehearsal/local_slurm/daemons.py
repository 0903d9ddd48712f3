"""munged and slurmctld in the foreground, as children that a terminal's Ctrl-C does not reach."""

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rehearsal.local_slurm.errors import SlurmError, tail
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.ports import LOOPBACK

START_TIMEOUT_S = 60.0
POLL_S = 0.05
KEY_BYTES = 128
ANCHOR = "tail"
Child = subprocess.Popen[bytes]


def start_anchor(
    *, root: Path, environment: Mapping[str, str], second_user: str | None
) -> tuple[Child, Path]:
    """Start a process that waits in `root`; return it and a short name of `root`, /proc/<id>/cwd.

    A Unix socket's path has at most 107 bytes: a node's socket would not fit in a project inside
    an ordinary home directory. The kernel opens the short name to root and to the process's own user only.
    """
    own = pwd.getpwnam(second_user) if second_user else None
    user = ["setpriv", f"--reuid={own.pw_uid}", f"--regid={own.pw_gid}", "--clear-groups"] if own else []
    child = subprocess.Popen(
        [*user, ANCHOR, "-f", "/dev/null"],
        env=dict(environment),
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # a rehearsal left running must not hold its starter's pipe
        start_new_session=True,
    )
    return child, Path(f"/proc/{child.pid}/cwd")


def start_munged(*, layout: Layout, environment: Mapping[str, str]) -> Child:
    """Start munged with its own key, socket and files. Raises SlurmError if it does not start."""
    folder = layout.root / "munge"
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(KEY_BYTES))
    # With --force, a folder that its group may write to causes a warning instead of an error.
    argv = ["munged", "--foreground", "--force", f"--socket={layout.munge_socket}", f"--key-file={key}"]
    argv += [f"--pid-file={layout.run}/munged.pid", f"--seed-file={folder}/seed"]
    argv += [f"--log-file={layout.log}/munged.log"]
    return start_daemon(
        argv, layout=layout, environment=environment, is_up=lambda: listens(layout.munge_socket)
    )


def start_slurmctld(*, layout: Layout, environment: Mapping[str, str], clean: bool = True) -> Child:
    """Start slurmctld with a clean state, or with the jobs and nodes of the previous one.

    Raises SlurmError, with its log's end, if it does not start.
    """
    argv = ["slurmctld", "-D", *(["-c"] if clean else []), "-f", str(layout.conf)]
    return start_daemon(
        argv, layout=layout, environment=environment, is_up=lambda: _controls(layout, environment)
    )


def start_daemon(
    argv: Sequence[str], *, layout: Layout, environment: Mapping[str, str], is_up: Callable[[], bool]
) -> Child:
    """Start a daemon that stays in the foreground, and wait until it is up.

    Raises SlurmError, with the end of its output and of its log NAME.log, if it does not come up.
    """
    name = argv[0]
    output = layout.log / f"{name}.out"
    with output.open("wb") as file:
        child = subprocess.Popen(
            argv,
            env=dict(environment),
            cwd=layout.run,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        if is_up():
            return child
        time.sleep(POLL_S)
    what = "does not answer" if child.poll() is None else f"ended with code {child.returncode}"
    said = "\n".join(tail(path) for path in (output, layout.log / f"{name}.log"))
    raise SlurmError(f"{name} {what} (after {START_TIMEOUT_S:.0f} s at most). Its output:\n{said}")


def listens(path: Path) -> bool:
    """Return True if a process listens at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def answers(port: int | None) -> bool:
    """Return True if a process listens at a port of the loopback."""
    with socket.socket() as client:
        return client.connect_ex((LOOPBACK, port)) == 0


def _controls(layout: Layout, environment: Mapping[str, str]) -> bool:
    """Return True if slurmctld answers Slurm's own question."""
    if not answers(layout.controller_port):
        return False
    ping = subprocess.run(
        ["scontrol", "ping"], env=dict(environment), check=False, capture_output=True, text=True, timeout=30
    )
    return "is UP" in ping.stdout
