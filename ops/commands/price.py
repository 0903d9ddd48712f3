"""The subcommand `trainctl price`."""

from typing import Annotated

import typer

from ops.options import Context, Json, console, finite, print_json


def price(
    workload: Annotated[
        str | None,
        typer.Argument(metavar="WORKLOAD", help="Workload whose fit and speed are estimated, such as titan."),
    ] = None,
    *,
    job: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting of the workload. Can be repeated."),
    ] = None,
    context: Context = None,
    tokens_per_s: Annotated[
        float | None,
        typer.Option(
            min=0.001, callback=finite, metavar="N", help="Speed of a run: tokens per second of all nodes."
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Run with the speed: a folder, or a job or name of the cluster."),
    ] = None,
    dataset_tokens: Annotated[
        float | None,
        typer.Option(
            min=1, callback=finite, metavar="N", help="Tokens in an epoch, such as 9e9, to price it."
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=36500, metavar="N", help="Forecast the interruptions of a run of N days."
        ),
    ] = None,
    save_s: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=1e9, metavar="N", help="With --days: seconds for which a save holds the training."
        ),
    ] = None,
    restart_s: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e9, metavar="N", help="With --days: seconds of a restart."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the catalog's dated prices instead of AWS's.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the cost of a cluster with these flags: idle, with all nodes, per million tokens and per epoch.

    Instance prices come from AWS's Price List API if it answers, otherwise from the catalog. Each row names
    its source. Without the speed of a run, the figures that others published for the family are used. With
    a workload, the command refuses a model that the nodes cannot hold, and estimates the speed from a
    published utilisation.
    """
    from ops.account.session import account_clients
    from ops.context import read_context
    from ops.goodput.forecast import forecast, rates_for
    from ops.price.metrics import metrics_cost, render_metrics_cost
    from ops.price.price_book import ask_prices, catalog_book
    from ops.price.price_list import pricing_client
    from ops.price.quote import make_quote
    from ops.price.render import show_expected, show_forecast, show_quote, show_storage, show_training
    from ops.price.training import known_speeds, training_cost
    from ops.usage import UsageError
    from training_cluster.pcluster.check import checked_config
    from training_cluster.rules.context import read_settings
    from training_cluster.sizing import about_storage, estimated_save_s

    if run and tokens_per_s:
        raise UsageError("price: --run and --tokens-per-s both give the speed of the run: give one of them.")
    if job and not workload:
        raise UsageError("price: --set is for a workload\n  type:    trainctl price titan --set SIZE=8B")
    if workload and (run or tokens_per_s):
        raise UsageError(
            "price: the speed of a workload is estimated: give it, or --run or --tokens-per-s, not both."
        )
    if (save_s or restart_s) and not days:
        raise UsageError("price: --save-s and --restart-s are for a forecast\n  type:    --days 30")
    settings = read_settings(read_context(context or []))
    config = checked_config(settings)  # what a deploy refuses has no price
    expected = None
    if workload:
        from ops.jobs.request import read_settings as read_job
        from ops.jobs.settings import check_job_settings
        from ops.price.expected import expect

        given = read_job(job or [], run=None)
        expected = expect(workload, given, settings)
        check_job_settings(workload, given, ())
        speeds = [expected.speed]
    else:
        speeds = known_speeds(settings, run=run, tokens_per_s=tokens_per_s)
    ahead = (
        forecast(
            rates_for(settings),
            nodes=settings.nodes,
            days=days,
            save_s=save_s,
            restart_s=restart_s,
            estimated_s=estimated_save_s(settings, expected.saves if expected else None),
        )
        if days
        else None
    )
    book = (
        catalog_book()
        if offline
        else ask_prices(settings, [config], client=account_clients, pricing=pricing_client)
    )
    quote, tokens = (
        make_quote(settings, book, config),
        dataset_tokens or (expected.tokens if expected else None),
    )
    storage = about_storage(settings, config, expected.saves if expected else None)
    costs = [cost for speed in speeds if (cost := training_cost(speed, quote, tokens))]
    if as_json:
        found = {"quote": quote, "training": costs, "metrics": metrics_cost(config), "storage": storage}
        more = {"job": expected, "forecast": ahead}
        return print_json(found | {key: value for key, value in more.items() if value})
    show_quote(quote, console())
    console().print(render_metrics_cost(metrics_cost(config)))
    if expected:
        show_expected(expected, console())
    show_storage(storage, console())
    if ahead:
        show_forecast(ahead, console())
    return show_training(costs, console(), whole="the run" if expected and not dataset_tokens else "an epoch")
