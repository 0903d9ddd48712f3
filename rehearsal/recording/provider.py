"""The provider's handlers with the real library, in one process of .venv-pcluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rehearsal.problems import RehearsalError
from rehearsal.workspace import PROJECT

CODE = PROJECT / "assets" / "cluster_provider"
_RECORDER = Path(__file__).with_name("recorder.py")
_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one handler returned, or the error that it raised."""

    answer: dict[str, Any]
    error: str
    types: dict[str, set[str]]
    """Of the resources in the templates that were uploaded, with their properties."""


class Provider:
    """Runs handlers one after another.

    Attributes:
        calls: all of them, `origin service operation parameter,parameter` as recorder.py says.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path) -> None:
        self.calls: set[str] = set()
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [PROJECT / ".venv-pcluster" / "bin" / "python", "-P", _RECORDER],
                env=dict(environment) | {"PYTHONPATH": str(CODE)},
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

    def call(self, handler: str, event: Mapping[str, Any], *, pretend: str = "") -> Answer:
        """Run one handler.

        Args:
            pretend: "", `no-stack` or `failed`.

        Raises:
            RehearsalError: the process ended; with the end of its log.
        """
        assert self._process.stdin and self._process.stdout
        try:
            request = {"handler": handler, "event": event, "pretend": pretend}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its log says why; the empty answer below tells
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise RehearsalError(f"The provider ended at {handler}. The end of {self._log}:\n{tail}")
        said = json.loads(line)
        self.calls |= set(said["calls"])
        return Answer(
            answer=said.get("answer") or {},
            error=said.get("error", ""),
            types={name: set(properties) for name, properties in said["types"].items()},
        )
