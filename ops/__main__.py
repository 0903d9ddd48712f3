"""`python -m ops`: what `make status`, `make teardown-plan` and `make preflight` call."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ops.context import read_context
from ops.preflight.checks import run_checks
from ops.preflight.report import report
from ops.session import account_clients
from ops.status import read_status, render
from ops.teardown.plan import read_plan, render_plan
from training_cluster.problems import ConfigurationError
from training_cluster.settings import Settings

_POLL_S, _QUIET_LOOKS = 5.0, 4


def _status(arguments: argparse.Namespace, console: Console) -> int:
    client = account_clients()
    asked = {"cloudformation": client("cloudformation"), "ssm": client("ssm")}

    def look() -> tuple[Text, bool]:
        status = read_status(arguments.cluster, **asked)
        return Text("\n".join(render(status, datetime.datetime.now(datetime.UTC)))), status.is_moving

    shown, _ = look()
    if arguments.watch != "1":
        console.print(shown)
        return 0
    with Live(shown, console=console, auto_refresh=False) as live:
        quiet = 0
        while quiet < _QUIET_LOOKS:  # between two stacks nothing moves for a while
            time.sleep(_POLL_S)
            try:
                shown, moving = look()
            except (BotoCoreError, ClientError) as error:
                shown, moving = Text(f"No answer: {error}"), True
            quiet = 0 if moving else quiet + 1
            live.update(shown, refresh=True)
    return 0


def _teardown_plan(arguments: argparse.Namespace, console: Console) -> int:
    console.print(Text("\n".join(render_plan(read_plan(arguments.cluster, account_clients())))))
    return 0


def _preflight(arguments: argparse.Namespace, console: Console) -> int:
    settings = Settings.from_context(read_context(arguments.context))
    return report(run_checks(settings, account_clients()), console)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ops", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace, Console], int], text: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text)
        added.set_defaults(run=run)
        return added

    status = add("status", _status, "what a deploy is at")
    status.add_argument("--watch", default="", help="1: until nothing moves any more (WATCH)")
    plan = add(
        "teardown-plan", _teardown_plan, "what goes, what stays, what it costs, how to delete the rest"
    )
    for each in (status, plan):
        each.add_argument("--cluster", default="training", help="cluster_name (CLUSTER)")
    preflight = add("preflight", _preflight, "whether the account has what a deploy with these flags needs")
    preflight.add_argument(
        "-c", "--context", action="append", default=[], metavar="FLAG=VALUE", help="as cdk"
    )
    return parser


def main() -> int:
    """Parse the command line; one message and an exit code for whatever goes wrong."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.run(arguments, Console(highlight=False, soft_wrap=True)))
    except KeyboardInterrupt:
        return 130
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(
            f"{arguments.command}: AWS gave no answer: {error}\n"
            "  needed: credentials and a region, as for cdk deploy\n"
            "  type:   aws sts get-caller-identity, and export AWS_REGION=...",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
