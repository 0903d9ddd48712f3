"""The head node's Prometheus on this machine, by one session of Session Manager."""

import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ops.account.region_and_profile import with_account
from ops.account.session import ClientOf
from ops.connect import forward_command, found
from ops.dashboards.prometheus import PORT
from ops.usage import OpsError

_TIMEOUT_S = 30.0
_GRACE_S = 5.0


def session(cluster: str, client: ClientOf, *, port: int | None = None) -> AbstractContextManager[str]:
    """Forward the port of the head node's Prometheus, to a free one by default.

    Raises:
        OpsError: no such cluster, or a program is missing here; and botocore's errors.
    """
    port = port or free_port()
    command = forward_command(cluster, client, port=PORT, local_port=port)
    return forwarded(found(shlex.split(with_account(shlex.join(command)))), port)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def forwarded(command: list[str], port: int) -> Iterator[str]:
    """Run a command that forwards a port; yield the port's address, and end the session at the end.

    Raises:
        OpsError: the session did not open; with what the command said.
    """
    with tempfile.TemporaryFile() as said:
        # A session of its own: Ctrl-C ends this program first, which then ends the command.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            while not _answers(port):
                if child.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    words = said.read().decode(errors="replace").strip() or "it says nothing"
                    raise OpsError(f"The port {port} is not forwarded: {words}")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            child.terminate()
            try:
                child.wait(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
