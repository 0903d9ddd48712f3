"""The real ParallelCluster library as a judge: one process of .venv-pcluster for all configs."""

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

_JUDGE = Path(__file__).with_name("judge.py")
_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a validator of ParallelCluster says."""

    level: str
    """ERROR, WARNING or INFO."""
    validator: str
    message: str


class Library:
    """Judges configs one after another; the library's answers of AWS are cached in between.

    Args:
        environment: of a client of the local AWS.
        log: takes what the library prints.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                # -P: the modules beside the script are not its own.
                [PROJECT / ".venv-pcluster" / "bin" / "python", "-P", _JUDGE],
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

    def judge(self, *, name: str, cluster_name: str, config: Mapping[str, Any]) -> list[Finding]:
        """What it says of one config.

        Raises:
            RehearsalError: it ended; with the end of its log.
        """
        assert self._process.stdin and self._process.stdout
        case = {"name": name, "cluster_name": cluster_name, "config": config}
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its log says why; the empty answer below tells
        answer = self._process.stdout.readline()
        if not answer:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise RehearsalError(
                f"The ParallelCluster library ended at {name}. The end of {self._log}:\n{tail}"
            )
        return [Finding(**each) for each in json.loads(answer)["failures"]]
