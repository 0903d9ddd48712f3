"""The checks of the real ParallelCluster library, in one process of .venv-pcluster for all configs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.pcluster_process import PclusterProcess

_JUDGE = Path(__file__).with_name("judge.py")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a validator of ParallelCluster."""

    level: str
    """Level: ERROR, WARNING or INFO."""
    validator: str
    message: str


class Library(PclusterProcess):
    """A process that checks configs one after another; the library caches AWS's answers in between.

    Args:
        environment: variables of a client of the local AWS.
        log: takes the output of the library.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path) -> None:
        super().__init__(_JUDGE, environment=environment, log=log)

    def judge(self, *, name: str, cluster_name: str, config: Mapping[str, Any]) -> list[Finding]:
        """Return the findings for one config. Raises RehearsalError if the process ended."""
        answer = self.ask({"name": name, "cluster_name": cluster_name, "config": config})
        return [Finding(**each) for each in answer["failures"]]
