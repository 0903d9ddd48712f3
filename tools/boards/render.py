"""Boards as JSON, by Grafana's foundation SDK, from the queries in panels.tsv.

The data source is chosen in Grafana ($datasource), and so is the job of a board whose queries have $job. A
row is a query with its legend; a panel without legends is a table. Rows of one name are one panel.
"""

import csv
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, prometheus, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.json_text import json_text
from training_cluster.paths import ROOT

FOLDER = ROOT / "ops" / "dashboards" / "boards"
_UIDS = {
    "Cluster": "training-cluster",
    "Jobs and users": "training-cluster-jobs",
    "One job's GPUs": "training-cluster-gpus",
    "Network": "training-cluster-network",
    "Cost": "training-cluster-cost",
    "Node health": "training-cluster-health",
}
# Metrics of a job's nodes: the job's labels from the nodes' own metric, which is many to one on shared nodes.
_OF_JOB = ("OF_JOB", 'slurm_node_job_info{job=~"$job"} * on (node) group_left ()')
_SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
_HEIGHT, _WIDTH = 8, 12


class Query(NamedTuple):
    """A row of the table."""

    board: str
    panel: str
    unit: str
    legend: str
    query: str
    about: str


def _read() -> list[Query]:
    with Path(__file__).with_name("panels.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Query(*(cell.replace(*_OF_JOB) for cell in row)) for row in rows][1:]


def render() -> dict[str, str]:
    """Return the text of each board by its file's name."""
    boards = groupby(_read(), key=lambda query: query.board)
    return {f"{_UIDS[title]}.json": _text(title, [*queries]) for title, queries in boards}


def write() -> None:
    """Write all boards."""
    for name, text in render().items():
        (FOLDER / name).write_text(text)


def _text(title: str, queries: Sequence[Query]) -> str:
    made = (
        dashboard.Dashboard(f"Training Cluster: {title}")
        .uid(_UIDS[title])
        .tags(["training-cluster"])
        .time("now-3h", "now")
        .refresh("30s")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    if any("$job" in each.query for each in queries):
        made = made.with_variable(
            dashboard.QueryVariable("job")
            .label("Job")
            .datasource(_SOURCE)
            .query("label_values(slurm_node_job_info, job)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )
    for _, panel in groupby(queries, key=lambda query: query.panel):
        made = made.with_panel(_panel([*panel]))
    built = json.dumps(made.build(), cls=JSONEncoder, sort_keys=True)
    return json_text(json.loads(built), levels=2)


def _panel(queries: Sequence[Query]) -> Any:
    form: Any = table.Panel()
    first, is_table = queries[0], not queries[0].legend
    if not is_table:
        legend = common.VizLegendOptions()
        legend = (
            legend.show_legend(True).display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        )
        form = timeseries.Panel().legend(legend).min(0)
    form = form.title(first.panel).unit(first.unit or "short").datasource(_SOURCE)
    form = form.height(_HEIGHT).span(_WIDTH)
    if first.about:
        form = form.description(first.about)
    for number, each in enumerate(queries):
        target = prometheus.Dataquery().expr(each.query).ref_id(chr(ord("A") + number)).datasource(_SOURCE)
        if is_table:
            target = target.instant().format(PromQueryFormat.TABLE)
        else:
            target = target.legend_format(each.legend)
        form = form.with_target(target)
    return form
