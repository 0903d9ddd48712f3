"""The local AWS as a child process."""

import secrets
import socket
import string
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from rehearsal.local_aws.address import REGION, LocalAwsAddress
from rehearsal.problems import RehearsalError, tail
from rehearsal.processes import end_group

# Printed by rehearsal.local_aws.server when every service answers.
READY = "local AWS ready"
START_TIMEOUT_S = 180
GRACE_S = 5.0
_POLL_S, _TAIL_LINES = 0.1, 15


def new_access_key() -> str:
    """Generate an access key id of AWS's form that nobody can guess."""
    return "AKIA" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(16))


class LocalAws:
    """One local AWS on a free loopback port, in its own session, so that Ctrl-C does not reach it.

    Args:
        folder: takes all files that it writes.
        marker: environment variable of all its processes.
    """

    def __init__(self, *, folder: Path, marker: tuple[str, str], region: str = REGION) -> None:
        self._folder, self._marker, self._region = folder, marker, region
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"

    def __enter__(self) -> LocalAwsAddress:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> LocalAwsAddress:
        """Start it and wait until it answers; raises as `wait` does."""
        address = self.launch()
        self.wait()
        return address

    def launch(self) -> LocalAwsAddress:
        """Start it. Nothing answers before `wait` returns."""
        self._folder.chmod(0o700)  # its files contain the access key
        (self._folder / "home").mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as listener, self.log.open("wb") as log:
            port = listener.getsockname()[1]
            address = LocalAwsAddress(
                port=port, folder=self._folder, access_key=new_access_key(), region=self._region
            )
            address.tmp.mkdir(exist_ok=True)  # TMPDIR of clients, which may start before it answers
            command = [sys.executable, "-m", "rehearsal.local_aws.server", f"--port={port}"]
            command += [f"--listener={listener.fileno()}", f"--folder={self._folder}"]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=address.client_environment() | dict([self._marker]),
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )
        return address

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            RehearsalError: it ended or did not answer in time; with the end of its log.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while READY not in self.log.read_text(errors="replace"):
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                said = tail(self.log, lines=_TAIL_LINES)
                raise RehearsalError(f"The local AWS did not start. The end of {self.log}:\n{said}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End it with all of its functions' processes: SIGTERM, a grace period, SIGKILL."""
        if self._process is not None:
            end_group(self._process, grace_s=GRACE_S)
        self._process = None
