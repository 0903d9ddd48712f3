"""Tables of a report, which page and terminal share."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ops.report.compared import Comparison, compare
from ops.report.panels import count, share, size
from ops.report.record import Run, Summary
from ops.report.run_cost import cost_of


@dataclass(frozen=True, kw_only=True)
class Table:
    """Text in rows; the first cell of each row is its name."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    different: frozenset[int] = frozenset()
    """Indexes of the rows whose values differ between runs."""
    note: str = ""


def time_of(moment: datetime.datetime | None) -> str:
    """Format a time in UTC."""
    return "" if moment is None else f"{moment.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """Format a duration: 1 h 04 min, 4 min 05 s, 12 s."""
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
    ("first validation loss", lambda found: found.first_val_loss, _loss),
    ("last validation loss", lambda found: found.last_val_loss, _loss),
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
    """Return the results of the runs, with a column for each."""
    rows = [("state", *(run.state for run in runs)), ("began (UTC)", *(time_of(run.begin) for run in runs))]
    rows.append(("trained", *(duration(sum(start.seconds for start in run.starts)) for run in runs)))
    for name, measure, shown in _MEASURES:
        found = [measure(run.summary) for run in runs]
        if any(value is not None for value in found):
            rows.append((name, *("" if value is None else shown(value) for value in found)))
    data = [run.data for run in runs]
    if any(data):
        rows.append(("data", *("; ".join(each.described) if each else "" for each in data)))
        epochs = [
            (run.summary.tokens or 0) / run.data.tokens if run.data and run.data.tokens else 0 for run in runs
        ]
        rows.append(("epochs so far", *(f"{each:,.3g}" if each else "" for each in epochs)))
    networks = [", ".join(run.network.transports) if run.network else "" for run in runs]
    if any(networks):
        rows.append(("network between the nodes", *networks))
    costs = [cost_of(run).usd for run in runs]
    if any(usd is not None for usd in costs):
        rows.append(
            ("cost of the nodes", *("not known" if usd is None else f"{usd:,.2f} USD" for usd in costs))
        )
    return Table(title="Summary", header=("", *(run.name for run in runs)), rows=tuple(rows))


def starts_table(run: Run) -> Table:
    """Return a row for each start, the first one first."""
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
    """Return a row for each existing checkpoint, the oldest first."""
    left_out = run.checkpoint_count - len(run.checkpoints)
    note = f"{left_out} older ones are not listed. " if left_out else ""
    return Table(
        title="Checkpoints",
        header=("step", "time (UTC)", "size"),
        rows=tuple((count(each.step), time_of(each.time), size(each.bytes)) for each in run.checkpoints),
        note=f"{note}Those that existed when the run was read; KEEP_CHECKPOINTS is the number that is kept.",
    )


OPENED_BY = {"trace": "https://ui.perfetto.dev", "memory": "https://docs.pytorch.org/memory_viz"}
"""Page that opens the files of each kind of profile."""


def profiles_table(run: Run) -> Table:
    """Return a row for each profile, with its folder and the page that opens its files."""
    return Table(
        title="Profiles",
        header=("step", "what", "files", "size", "folder", "opened by"),
        rows=tuple(
            (
                count(each.step),
                each.kind,
                count(each.files),
                size(each.bytes),
                each.folder,
                OPENED_BY[each.kind],
            )
            for each in run.profiles
        ),
    )


def settings_table(runs: Sequence[Run]) -> Table:
    """Return a row for each setting of the last start, with a column for each run; differences come first."""
    names = sorted({name for run in runs for name in run.settings})
    rows = [(name, *(run.settings.get(name, "") for run in runs)) for name in names]
    differ = [row for row in rows if len(set(row[1:])) > 1]
    same = [row for row in rows if len(set(row[1:])) <= 1]
    unrecorded = [run.name for run in runs if not run.settings]
    return Table(
        title="Configuration",
        header=("setting", *(run.name for run in runs)),
        rows=(*differ, *same),
        different=frozenset(range(len(differ))),
        note=f"Older scripts recorded no settings: {', '.join(unrecorded)}." if unrecorded else "",
    )


def published_table(run: Run) -> Table:
    """Return a row for each published figure of the run's family."""
    return Table(
        title="Beside published figures",
        header=("what", "published", "this run", "share", "remark", "source"),
        rows=tuple(_published(each) for each in compare(run)),
    )


def _published(each: Comparison) -> tuple[str, ...]:
    percent = "" if each.share is None else f"{each.share:.0%}"
    return each.what, each.published, each.own, percent, each.remark, each.source


def warnings_of(run: Run) -> Iterator[str]:
    """Yield the warnings about a run that come before its report."""
    if run.is_rehearsal:
        yield "A rehearsal: small sizes on a CPU, without a cluster. Its figures do not predict a real run's."
    for name, wrong in run.not_finite.items():
        first = f"the first at step {wrong.first_step:,}"
        yield f"{wrong.count} values of {name} are not finite, {first}; the curves omit them."
    if run.damaged_rows:
        yield f"Damaged rows of metrics, starts and ends that were skipped: {run.damaged_rows:,}."
    if run.network and run.network.complaint:
        yield run.network.complaint
    if not run.rows:
        yield "The run wrote no metrics."
