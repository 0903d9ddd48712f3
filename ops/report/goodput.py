"""Goodput of a run: the share of its paid node time that trained, next to the forecast of it."""

from collections.abc import Sequence

from ops.goodput.forecast import Forecast, forecast, rates_of
from ops.report.panels import share
from ops.report.record import Run
from ops.report.tables import Table, duration
from training_cluster.catalog.families import find_instance_type


def forecast_of(run: Run) -> Forecast | None:
    """Forecast a run with its own means of saves and restarts; None in a rehearsal or on unknown nodes."""
    found = find_instance_type(run.settings.get("INSTANCE_TYPE") or "none")
    if not (run.goodput and run.starts and found) or run.is_rehearsal:
        return None
    (family, size), nodes, own = found, run.starts[-1].node_count, run.goodput
    is_spot = run.settings.get("CAPACITY") == "spot"
    rates = rates_of(family.name, accelerators=size.accelerators, is_spot=is_spot)
    days = own.paid_s / nodes / 86400
    return forecast(rates, nodes=nodes, days=days, save_s=own.save_s, restart_s=own.restart_s)


def goodput_table(runs: Sequence[Run]) -> Table:
    """Return the parts of the paid time, with a column for each run; no rows if no run has them."""
    found = [run.goodput for run in runs]
    rows = [("paid node-hours", *(f"{each.paid_s / 3600:,.2f}" if each else "" for each in found))]
    for part in dict.fromkeys(name for each in found if each for name in each.node_s):
        shares = (each.node_s.get(part, 0.0) / (each.paid_s or 1.0) if each else None for each in found)
        rows.append((part, *("" if value is None else share(value) for value in shares)))
    ahead = [forecast_of(run) for run in runs]
    rows.insert(2, ("training, as forecast", *(share(each.train_share) if each else "" for each in ahead)))
    rows.append(("queued again, unpaid", *(duration(each.waiting_s) if each else "" for each in found)))
    rows.append(("ends not seen", *(str(each.unseen_ends) if each else "" for each in found)))
    notes = [
        f"{run.name}, forecast: {each.interruptions:.2g} interruptions; a save every "
        f"{duration(each.save_every_s)}; {'; '.join((*each.facts, *each.sources))}."
        for run, each in zip(runs, ahead, strict=True)
        if each
    ]
    header = ("share of paid node time", *(run.name for run in runs))
    return Table(title="Goodput", header=header, rows=tuple(rows) if any(found) else (), note=" ".join(notes))
