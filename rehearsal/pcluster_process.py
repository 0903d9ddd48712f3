"""A process of .venv-pcluster that answers JSON lines, since the library cannot be imported here."""

import contextlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rehearsal.problems import RehearsalError, tail
from training_cluster.paths import PCLUSTER_PYTHON

_GRACE_S = 5.0
_TAIL_LINES = 15


class ProcessEndedError(RehearsalError):
    """The process ended, so it answers no further question."""


class PclusterProcess:
    """One script that keeps running, since loading the library takes seconds.

    Args:
        environment: variables of a client of the local AWS.
        log: takes the output of the script and the library.
        own_folder: True if the script imports modules beside it.
    """

    def __init__(
        self, script: Path, *, environment: Mapping[str, str], log: Path, own_folder: bool = False
    ) -> None:
        self._script, self._log = script, log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [PCLUSTER_PYTHON, *([] if own_folder else ["-P"]), script],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(_GRACE_S)

    def send(self, question: Mapping[str, Any]) -> None:
        """Send a line that gets no answer."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # the log has the reason; the next answer is empty
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a line and wait for the answer.

        Raises:
            ProcessEndedError: the process ended; with the end of its log.
        """
        self.send(question)
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            said = tail(self._log, lines=_TAIL_LINES)
            raise ProcessEndedError(
                f"{self._script.name} ended during {question}. The end of {self._log}:\n{said}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer
