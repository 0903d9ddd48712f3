"""The provider's handlers with the real library, in one process of .venv-pcluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.pcluster_process import PclusterProcess
from training_cluster.paths import ROOT

CODE = ROOT / "assets" / "cluster_provider"
_RECORDER = Path(__file__).with_name("recorder.py")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of one handler, or its error."""

    answer: dict[str, Any]
    error: str
    types: dict[str, set[str]]
    """Resource types in the uploaded templates, with the properties of each."""


class Provider(PclusterProcess):
    """The process of the handlers, which runs one after another.

    Attributes:
        calls: all calls so far, `origin service operation parameter,parameter` as in recorder.py.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path) -> None:
        self.calls: set[str] = set()
        super().__init__(_RECORDER, environment=dict(environment) | {"PYTHONPATH": str(CODE)}, log=log)

    def call(self, handler: str, event: Mapping[str, Any], *, pretend: str = "") -> Answer:
        """Run one handler and return its answer.

        Args:
            pretend: "", `no-stack` or `failed`.

        Raises:
            RehearsalError: the process ended; with the end of its log.
        """
        said = self.ask({"handler": handler, "event": event, "pretend": pretend})
        self.calls |= set(said["calls"])
        return Answer(
            answer=said.get("answer") or {},
            error=said.get("error", ""),
            types={name: set(properties) for name, properties in said["types"].items()},
        )
