"""The tables of a report: the same on the page and in the terminal."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ops.report.compared import Comparison, compare
from ops.report.money import cost_of
from ops.report.panels import count, share, size
from ops.report.record import Run, Summary


@dataclass(frozen=True, kw_only=True)
class Table:
    """Text in rows; the first cell of a row names it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    different: frozenset[int] = frozenset()
    """Rows whose values differ between runs."""
    note: str = ""


def time_of(moment: datetime.datetime | None) -> str:
    """For people, in UTC."""
    return "" if moment is None else f"{moment.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """For people: 1 h 04 min, 4 min 05 s, 12 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _loss(value: float) -> str:
    return f"{value:.4f}"


def _bandwidth(value: float) -> str:
    return f"{value:.4g} GB/s"


_MEASURES: tuple[tuple[str, Callable[[Summary], float | None], Callable[[float], str]], ...] = (
    ("steps", lambda found: None if found.message_bytes else found.steps, count),
    ("tokens", lambda found: found.tokens, count),
    ("first loss", lambda found: found.first_loss, _loss),
    ("last loss", lambda found: found.last_loss, _loss),
    ("tokens per second (median)", lambda found: found.tokens_per_s, count),
    ("sequences per second (median)", lambda found: found.seq_per_s, count),
    ("MFU (median)", lambda found: found.mfu, share),
    ("waiting for data (median)", lambda found: found.data_share, share),
    ("peak memory", lambda found: found.memory_bytes, size),
    ("highest bus bandwidth", lambda found: found.busbw_gb_per_s, _bandwidth),
    ("at messages of", lambda found: found.message_bytes, size),
    ("ranks", lambda found: found.world_size, count),
    ("restarts", lambda found: found.restarts, count),
)


def summary_table(runs: Sequence[Run]) -> Table:
    """What the runs came to, a column a run."""
    rows = [("state", *(run.state for run in runs)), ("began (UTC)", *(time_of(run.begin) for run in runs))]
    rows.append(("trained", *(duration(sum(start.seconds for start in run.starts)) for run in runs)))
    for name, measure, shown in _MEASURES:
        found = [measure(run.summary) for run in runs]
        if any(value is not None for value in found):
            rows.append((name, *("" if value is None else shown(value) for value in found)))
    costs = [cost_of(run).usd for run in runs]
    if any(usd is not None for usd in costs):
        rows.append(
            ("cost while it trained", *("not known" if usd is None else f"{usd:,.2f} USD" for usd in costs))
        )
    return Table(title="Summary", header=("", *(run.name for run in runs)), rows=tuple(rows))


def starts_table(run: Run) -> Table:
    """A row a start, the first one first."""
    left_out = run.start_count - len(run.starts)
    return Table(
        title="Starts and nodes",
        header=("start", "time (UTC)", "from step", "trained", "job", "nodes", "instance type"),
        rows=tuple(
            (
                "first" if number == 0 else f"restart {number}",
                time_of(start.time),
                count(start.step),
                duration(start.seconds),
                start.job,
                f"{start.node_count}: {start.nodes}",
                start.instance_type or "",
            )
            for number, start in enumerate(run.starts, start=left_out)
        ),
        note=f"{left_out} older starts are not listed." if left_out else "",
    )


def checkpoints_table(run: Run) -> Table:
    """A row a checkpoint that is there, the oldest first."""
    left_out = run.checkpoint_count - len(run.checkpoints)
    note = f"{left_out} older ones are not listed. " if left_out else ""
    return Table(
        title="Checkpoints",
        header=("step", "time (UTC)", "size"),
        rows=tuple((count(each.step), time_of(each.time), size(each.bytes)) for each in run.checkpoints),
        note=f"{note}Those that were there when the run was read; KEEP_CHECKPOINTS says how many stay.",
    )


def settings_table(runs: Sequence[Run]) -> Table:
    """A row a setting of the last start, a column a run; those that differ come first."""
    names = sorted({name for run in runs for name in run.settings})
    rows = [(name, *(run.settings.get(name, "") for run in runs)) for name in names]
    differ = [row for row in rows if len(set(row[1:])) > 1]
    same = [row for row in rows if len(set(row[1:])) <= 1]
    silent = [run.name for run in runs if not run.settings]
    return Table(
        title="Configuration",
        header=("setting", *(run.name for run in runs)),
        rows=(*differ, *same),
        different=frozenset(range(len(differ))),
        note=f"Not written down by older scripts: {', '.join(silent)}." if silent else "",
    )


def published_table(run: Run) -> Table:
    """A row a published figure of the run's family."""
    return Table(
        title="Beside published figures",
        header=("what", "published", "this run", "share", "remark", "source"),
        rows=tuple(_published(each) for each in compare(run)),
    )


def _published(each: Comparison) -> tuple[str, ...]:
    percent = "" if each.share is None else f"{each.share:.0%}"
    return each.what, each.published, each.own, percent, each.remark, each.source


def warnings_of(run: Run) -> Iterator[str]:
    """What somebody should know before reading on."""
    if run.is_rehearsal:
        yield "A rehearsal: small sizes on a CPU, and no cluster. Its figures say nothing of the real one."
    for name, wrong in run.not_finite.items():
        first = f"the first at step {wrong.first_step:,}"
        yield f"{wrong.count} values of {name} are not finite, {first}; no curve has them."
    if not run.rows:
        yield "The run wrote no metrics."
