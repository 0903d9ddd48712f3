"""Boards: the files are what Grafana's library renders now, and every metric in them exists."""

import re

from ops.asset_code import asset_code
from rehearsal.monitoring.boards import board_queries
from tools.boards.render import FOLDER, render

# Of node_exporter and Prometheus: a rehearsal shows that they exist.
OTHERS = ("node_", "up", "ALERTS")


def test_the_files_are_what_the_library_renders() -> None:
    assert {path.name: path.read_text() for path in FOLDER.glob("*.json")} == render(), (
        "type: python -m tools.boards"
    )


def test_every_queried_metric_is_written_by_a_node() -> None:
    names = asset_code("bootstrap/metrics", "names").names.NAMES
    for board, panel, query in board_queries():
        used = re.findall(
            r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r'"[^"]*"|\{[^}]*\}|(by|on|group_left) \([^)]*\)', "", query)
        )
        metrics = {each for each in used if "_" in each or each in OTHERS}
        assert metrics, (board, panel)
        unknown = {each for each in metrics if each not in names and not each.startswith(OTHERS)}
        assert not unknown, (board, panel)
