"""The command `trainctl` with its subcommands, in the order in which they are used."""

from collections.abc import Callable
from typing import Annotated

import typer

from ops.account.region_and_profile import choose_account
from ops.commands.buying.capacity import capacity
from ops.commands.cancel import cancel
from ops.commands.check_nodes import check_nodes
from ops.commands.connect import connect
from ops.commands.dashboards import dashboards
from ops.commands.destroy import destroy
from ops.commands.diagnose import diagnose
from ops.commands.export import export
from ops.commands.jobs import jobs
from ops.commands.local.image_plan import image_plan
from ops.commands.local.import_config import import_config
from ops.commands.local.lint import lint
from ops.commands.local.new_workload import new_workload
from ops.commands.local.prove import prove
from ops.commands.local.rehearse import rehearse
from ops.commands.logs import logs
from ops.commands.people.secret import app as secret
from ops.commands.people.usage import usage
from ops.commands.people.users import app as users
from ops.commands.plan import deploy, plan
from ops.commands.preflight import preflight
from ops.commands.price import price
from ops.commands.registry import registry
from ops.commands.report import report
from ops.commands.status import status
from ops.commands.submit import submit
from ops.commands.sync import sync
from ops.commands.top import top
from ops.commands.verify import verify
from ops.options import Command, Group

app = typer.Typer(
    name="trainctl",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan, deploy, watch, use and repair a training cluster. To delete it, use `cdk`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - most commands need neither

        from training_cluster.flags.cluster import PCLUSTER_VERSION  # noqa: PLC0415

        typer.echo(f"trainctl {version('training-cluster')}, for ParallelCluster {PCLUSTER_VERSION}")
        raise typer.Exit


@app.callback()
def account(
    region: Annotated[str | None, typer.Option(help="AWS region.", metavar="REGION")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI, from ~/.aws.", metavar="NAME")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--as", help="User on the cluster. Default: the user whose `iam` entry is you.", metavar="NAME"
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Set the account and region for boto3 and for every command that is started or printed."""
    choose_account(region=region, profile=profile, user=user)


BEFORE, RUNNING, BROKEN, AFTER = "Before you pay", "While it runs", "When it breaks", "Afterwards"


def _add(command: Callable[..., None], panel: str, example: str, *, name: str | None = None) -> None:
    app.command(name, cls=Command, epilog=f"Example: {example}", rich_help_panel=panel)(command)


_add(preflight, BEFORE, "`trainctl preflight -c family=p4d -c image=build`")
_add(price, BEFORE, "`trainctl price -c family=p5 -c nodes=4 --dataset-tokens 9e9`")
_add(capacity, BEFORE, "`trainctl capacity --family p5 --nodes 16 --days 14`")
_add(import_config, BEFORE, "`trainctl import cluster.yaml --out imported`", name="import")
_add(image_plan, BEFORE, "`trainctl image-plan p4d -c os=alinux2023`")
_add(plan, BEFORE, "`trainctl plan -c nodes=4 -c on_busy=drain`")
_add(deploy, BEFORE, "`trainctl deploy -c nodes=4`")
_add(lint, BEFORE, "`trainctl lint job.slurm train.sh`")
_add(new_workload, BEFORE, "`trainctl new-workload my-model`, then `trainctl rehearse --workload my-model`")
_add(rehearse, BEFORE, "`trainctl rehearse --family p5 --keep`")
_add(prove, BEFORE, "`trainctl prove my-model`, or `trainctl prove my-model kill node`")
app.add_typer(users, name="users", rich_help_panel=BEFORE)
_add(verify, RUNNING, "`trainctl verify`")
_add(status, RUNNING, "`trainctl status --watch`")
_add(top, RUNNING, "`trainctl top --once`")
_add(dashboards, RUNNING, "`trainctl dashboards --export boards`")
_add(sync, RUNNING, "`trainctl sync up my-corpus datasets/my-corpus`")
_add(submit, RUNNING, "`trainctl submit gpt2 --nodes 2 --set MAX_STEPS=200 --follow`")
_add(jobs, RUNNING, "`trainctl jobs --all`")
_add(logs, RUNNING, "`trainctl logs 17 --follow`")
_add(cancel, RUNNING, "`trainctl cancel 17 18`")
_add(connect, RUNNING, "`trainctl connect -- sinfo`")
_add(registry, RUNNING, "`trainctl registry login nvcr.io`, or `... login docker.io --user me`")
app.add_typer(secret, name="secret", rich_help_panel=RUNNING)
_add(usage, AFTER, "`trainctl usage --by account --since 2026-11-01`")
_add(report, AFTER, "`trainctl report 17 18 --html runs.html`")
_add(export, AFTER, "`trainctl export titan/my-run --checkpoint 5000 --follow`")
_add(diagnose, BROKEN, "`trainctl diagnose`, or `trainctl diagnose train-42.log`")
_add(check_nodes, BROKEN, "`trainctl check-nodes --drain`")
_add(destroy, AFTER, "`trainctl destroy --plan`")
