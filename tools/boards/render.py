"""Boards as JSON, by Grafana's foundation SDK; the data source is chosen in Grafana ($datasource)."""

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.boards.of_cluster import CLUSTER, COST, HEALTH, NETWORK
from tools.boards.of_jobs import GPUS, JOBS
from tools.boards.panel import Board, Panel
from tools.json_text import json_text
from training_cluster.paths import ROOT

FOLDER = ROOT / "ops" / "dashboards" / "boards"
BOARDS = (CLUSTER, JOBS, GPUS, NETWORK, COST, HEALTH)
_SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
_HEIGHT, _WIDTH = 8, 12


def render() -> dict[str, str]:
    """Return the text of each board by its file's name."""
    return {f"{board.uid}.json": _text(board) for board in BOARDS}


def write(folder: Path = FOLDER) -> None:
    """Write all boards."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in render().items():
        (folder / name).write_text(text)


def _text(board: Board) -> str:
    made = (
        dashboard.Dashboard(f"Training Cluster: {board.title}")
        .uid(board.uid)
        .tags(["training-cluster"])
        .time("now-3h", "now")
        .refresh("30s")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    if board.of_one_job:
        made = made.with_variable(
            dashboard.QueryVariable("job")
            .label("Job")
            .datasource(_SOURCE)
            .query("label_values(slurm_node_job_info, job)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )
    for panel in board.panels:
        made = made.with_panel(_panel(panel))
    built = json.dumps(made.build(), cls=JSONEncoder, sort_keys=True)
    return json_text(json.loads(built), levels=2)


def _panel(panel: Panel) -> Any:
    form: Any
    if panel.kind == "table":
        form = table.Panel()
    else:
        legend = common.VizLegendOptions()
        legend = (
            legend.show_legend(True).display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        )
        form = timeseries.Panel().legend(legend).min(0)
    form = form.title(panel.title).unit(panel.unit).datasource(_SOURCE).height(_HEIGHT).span(_WIDTH)
    if panel.about:
        form = form.description(panel.about)
    for number, (query, legend_format) in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query).ref_id(chr(ord("A") + number)).datasource(_SOURCE)
        if legend_format:
            target = target.legend_format(legend_format)
        if panel.kind == "table":
            target = target.instant().format(PromQueryFormat.TABLE)
        form = form.with_target(target)
    return form
