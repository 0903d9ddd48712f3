"""Results of `trainctl verify` as JSON and as one HTML page."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any, get_args

from ops.report.html import STYLE, digest, table_html
from ops.report.tables import Table
from ops.verify.check import Result, Verdict
from training_cluster.flags.cluster import PCLUSTER_VERSION

_PAGE = Path(__file__).with_name("page.html")
_HEADINGS: dict[Verdict, str] = {
    "differs": "What differs",
    "could not look": "What could not be looked at",
    "held": "What held",
}


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of one verification."""

    cluster_name: str
    region: str
    is_rehearsal: bool
    nodes: int
    """Number of compute nodes that were started for it; 0 for none."""
    results: Sequence[Result]

    def count(self, verdict: Verdict) -> int:
        """Return the number of checks with a verdict."""
        return sum(each.verdict == verdict for each in self.results)


def as_json(report: Report) -> dict[str, Any]:
    """Return the report for programs."""
    return {
        "cluster": report.cluster_name,
        "region": report.region,
        "rehearsal": report.is_rehearsal,
        "nodes": report.nodes,
        "version": PCLUSTER_VERSION,
        "counts": {verdict: report.count(verdict) for verdict in get_args(Verdict)},
        "checks": report.results,
    }


def render_page(report: Report) -> str:
    """Render the whole page, without a script."""
    rehearsal = '<p class="warning">This was a rehearsal: each check says what it cannot show.</p>'
    return Template(_PAGE.read_text()).substitute(
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {digest(STYLE)}",
        title=escape(f"{report.cluster_name}: trainctl verify"),
        style=STYLE,
        heading=escape(f"{report.cluster_name} in {report.region}"),
        read=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M}",
        warnings=rehearsal if report.is_rehearsal else "",
        tiles="".join(
            f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in _tiles(report)
        ),
        sections="\n".join(_section(verdict, heading, report) for verdict, heading in _HEADINGS.items()),
    )


def _tiles(report: Report) -> Iterator[tuple[str, str]]:
    for verdict in get_args(Verdict):
        yield verdict, str(report.count(verdict))
    yield "compute nodes started", str(report.nodes)
    yield "ParallelCluster", PCLUSTER_VERSION


def _section(verdict: Verdict, heading: str, report: Report) -> str:
    rows = tuple(
        (each.id, each.claim, each.seen, each.expected, each.not_in_rehearsal)
        for each in report.results
        if each.verdict == verdict
    )
    header = ("check", "claim", "seen", "expected", "not in a rehearsal")
    table = table_html(Table(title=heading, header=header, rows=rows))
    id_ = verdict.replace(" ", "-")
    return (
        f'<section aria-labelledby="{id_}"><h2 id="{id_}">{heading}</h2>{table or "<p>None.</p>"}</section>'
    )
