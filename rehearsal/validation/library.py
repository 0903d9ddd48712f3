"""The real ParallelCluster library as a judge: one process of .venv-pcluster for all configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.answering import AnsweringProcess

_JUDGE = Path(__file__).with_name("judge.py")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a validator of ParallelCluster says."""

    level: str
    """ERROR, WARNING or INFO."""
    validator: str
    message: str


class Library(AnsweringProcess):
    """Judges configs one after another; the library's answers of AWS are cached in between.

    Args:
        environment: of a client of the local AWS.
        log: takes what the library prints.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path) -> None:
        super().__init__(_JUDGE, environment=environment, log=log)

    def judge(self, *, name: str, cluster_name: str, config: Mapping[str, Any]) -> list[Finding]:
        """What it says of one config. Raises RehearsalError when it ended."""
        answer = self.ask({"name": name, "cluster_name": cluster_name, "config": config})
        return [Finding(**each) for each in answer["failures"]]
