"""The boards' queries, run on a rehearsal's Prometheus."""

import json
import time
from dataclasses import dataclass

from rehearsal.monitoring.prometheus import query_range
from training_cluster.paths import ROOT

BOARDS = ROOT / "ops" / "dashboards" / "boards"
_STEP_S, _MOST_POINTS = 2.0, 5000
NEEDS_HARDWARE = {
    "gpu_": "nvidia-smi",
    "neuron_": "neuron-monitor",
    "efa_": "hw_counters of an EFA device",
    "lustre_client_": "lctl get_param llite.*.stats",
    "training_mfu_ratio": "the peak of the accelerator that a run trains on",
}
"""Prefixes of metrics that no rehearsal has, with the source of each."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A query of a board, with its answer."""

    board: str
    panel: str
    query: str
    series: int

    @property
    def needs(self) -> str | None:
        """Source of its metrics, if no rehearsal has them; else None."""
        found = (source for begins, source in NEEDS_HARDWARE.items() if begins in self.query)
        return next(found, None)


def board_queries() -> list[tuple[str, str, str]]:
    """List board, panel and query of all boards, with Grafana's variables replaced."""
    found = []
    for file in sorted(BOARDS.glob("*.json")):
        board = json.loads(file.read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                text = target["expr"].replace("$job", ".+").replace("$__rate_interval", "1m")
                found.append((board["title"].removeprefix("Training Cluster: "), panel["title"], text))
    return found


def ask_all(url: str, *, since: float) -> list[Asked]:
    """Run each query for the time since `since`. Raises RehearsalError if Prometheus refuses one."""
    now = time.time()
    step_s = max(_STEP_S, (now - since) / _MOST_POINTS)
    return [
        Asked(
            board=board,
            panel=panel,
            query=text,
            series=len(query_range(url, text, start=since, end=now, step_s=step_s)),
        )
        for board, panel, text in board_queries()
    ]


def without_data(asked: list[Asked]) -> list[Asked]:
    """Return the queries without data that need no hardware."""
    return [each for each in asked if not each.series and not each.needs]


def ask_until_complete(url: str, *, timeout_s: float, since: float | None = None) -> list[Asked]:
    """Run the queries until each has data or needs hardware, or the time is over; return the last answers.

    Args:
        since: beginning of the time that counts, seconds since 1970; by default now.
    """
    since = time.time() if since is None else since
    deadline = time.monotonic() + timeout_s
    while without_data(asked := ask_all(url, since=since)) and time.monotonic() < deadline:
        time.sleep(2)
    return asked
