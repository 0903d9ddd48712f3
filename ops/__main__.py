"""`python -m ops status`: what `make status` calls."""

from __future__ import annotations

import argparse
import datetime
import sys
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ops.status import read_status, render
from training_cluster.problems import ConfigurationError

_POLL_S, _QUIET_LOOKS = 5.0, 4


def _status(cluster_name: str, *, watch: bool, console: Console) -> None:
    clients = {"cloudformation": boto3.client("cloudformation"), "ssm": boto3.client("ssm")}

    def look() -> tuple[Text, bool]:
        status = read_status(cluster_name, **clients)
        return Text("\n".join(render(status, datetime.datetime.now(datetime.UTC)))), status.is_moving

    shown, _ = look()
    if not watch:
        console.print(shown)
        return
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


def main() -> int:
    """Parse the command line; one message and an exit code for whatever goes wrong."""
    parser = argparse.ArgumentParser(prog="ops", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    status = commands.add_parser("status", help="what a deploy is at")
    status.add_argument("--cluster", default="training", help="cluster_name (CLUSTER)")
    status.add_argument("--watch", default="", help="1: until nothing moves any more (WATCH)")
    arguments = parser.parse_args()
    try:
        _status(
            arguments.cluster, watch=arguments.watch == "1", console=Console(highlight=False, soft_wrap=True)
        )
    except KeyboardInterrupt:
        return 130
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(
            f"status: AWS gave no answer: {error}\n"
            "  needed: credentials and a region, as for cdk deploy\n"
            "  type:   aws sts get-caller-identity, and export AWS_REGION=...",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
