"""The command `trainctl` with its subcommands, in the order in which they are used."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.account.region_and_profile import choose_account
from ops.commands.cancel import cancel
from ops.commands.connect import connect
from ops.commands.destroy import destroy
from ops.commands.diagnose import diagnose
from ops.commands.jobs import jobs
from ops.commands.local.image_plan import image_plan
from ops.commands.local.import_config import import_config
from ops.commands.local.lint import lint
from ops.commands.local.new_workload import new_workload
from ops.commands.local.rehearse import rehearse
from ops.commands.logs import logs
from ops.commands.plan import plan
from ops.commands.preflight import preflight
from ops.commands.price import price
from ops.commands.report import report
from ops.commands.status import status
from ops.commands.submit import submit
from ops.commands.sync import sync
from ops.commands.users import app as users
from ops.commands.verify import verify

app = typer.Typer(
    name="trainctl",
    help="The command line beside `cdk`: check before you pay, watch while it runs, diagnose when it fails.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def account(
    region: Annotated[str | None, typer.Option(help="AWS region.", metavar="REGION")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of ~/.aws, as for the AWS CLI.", metavar="NAME")
    ] = None,
) -> None:
    """Set the account and region for boto3 and for every command that is started or printed."""
    choose_account(region=region, profile=profile)


BEFORE, RUNNING, BROKEN, AFTER = "Before you pay", "While it runs", "When it breaks", "Afterwards"

app.command(epilog="Example: `trainctl preflight -c family=p4d -c image=build`", rich_help_panel=BEFORE)(
    preflight
)
app.command(
    epilog="Example: `trainctl price -c family=p5 -c nodes=4 --dataset-tokens 9e9`", rich_help_panel=BEFORE
)(price)
app.command(
    "import", epilog="Example: `trainctl import cluster.yaml --out imported`", rich_help_panel=BEFORE
)(import_config)
app.command(epilog="Example: `trainctl image-plan p4d -c os=alinux2023`", rich_help_panel=BEFORE)(image_plan)
app.command(epilog="Example: `trainctl plan -c nodes=4 -c on_busy=drain`", rich_help_panel=BEFORE)(plan)
app.command(epilog="Example: `trainctl lint job.slurm train.sh`", rich_help_panel=BEFORE)(lint)
app.command(
    epilog="Example: `trainctl new-workload my-model`, then `trainctl rehearse --workload my-model`",
    rich_help_panel=BEFORE,
)(new_workload)
app.command(epilog="Example: `trainctl rehearse --family p5 --keep`", rich_help_panel=BEFORE)(rehearse)
app.add_typer(users, name="users", rich_help_panel=BEFORE)
app.command(epilog="Example: `trainctl verify --cluster training`", rich_help_panel=RUNNING)(verify)
app.command(epilog="Example: `trainctl status --cluster training --watch`", rich_help_panel=RUNNING)(status)
app.command(epilog="Example: `trainctl sync up my-corpus datasets/my-corpus`", rich_help_panel=RUNNING)(sync)
app.command(
    epilog="Example: `trainctl submit gpt2 --nodes 2 --set MAX_STEPS=200 --follow`", rich_help_panel=RUNNING
)(submit)
app.command(epilog="Example: `trainctl jobs --all`", rich_help_panel=RUNNING)(jobs)
app.command(epilog="Example: `trainctl logs 17 --follow`", rich_help_panel=RUNNING)(logs)
app.command(epilog="Example: `trainctl cancel 17 18`", rich_help_panel=RUNNING)(cancel)
app.command(epilog="Example: `trainctl connect -- sinfo`", rich_help_panel=RUNNING)(connect)
app.command(epilog="Example: `trainctl report 17 18 --html runs.html`", rich_help_panel=AFTER)(report)
app.command(
    epilog="Example: `trainctl diagnose`, or `trainctl diagnose train-42.log`", rich_help_panel=BROKEN
)(diagnose)
app.command(epilog="Example: `trainctl destroy --plan`", rich_help_panel=AFTER)(destroy)
