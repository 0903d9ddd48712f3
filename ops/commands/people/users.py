"""The subcommands `trainctl users list`, `add` and `lock`."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ops.options import Command, Context, Group, Json, print_json

app = typer.Typer(
    cls=Group, help="List, add and lock the cluster's users in the users file.", no_args_is_help=True
)
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Users file. Default: the file of the flag users, here or in the last deploy, or users.yaml.",
    ),
]
Apply = Annotated[
    bool,
    typer.Option("--apply", help="Then run trainctl deploy --yes with the file, a live update."),
]


@app.command("list", cls=Command, epilog="Example: `trainctl users list`")
def list_users(file: File = None, context: Context = None, as_json: Json = False) -> None:
    """List the users and project accounts of the users file."""
    from ops.users.list import render_list
    from training_cluster.users.file import read_users

    users = read_users(str(_file(file, context)))
    if as_json:
        return print_json(users)
    return typer.echo(render_list(users))


@app.command(cls=Command, epilog="Example: `trainctl users add alice --key alice.pub`")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user on the cluster.")],
    *,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="KEY", help="Public SSH key: a .pub file, or its line. Can be repeated."
        ),
    ] = None,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Project account.")] = None,
    uid: Annotated[
        int | None, typer.Option(metavar="UID", help="User id. Default: one more than the highest.")
    ] = None,
    iam: Annotated[
        list[str] | None,
        typer.Option("--iam", metavar="ARN", help="IAM user, role or session name. Can be repeated."),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Allow sudo on all nodes.")] = False,
    file: File = None,
    context: Context = None,
    apply: Apply = False,
    as_json: Json = False,
) -> None:
    """Add a user to the users file. The next deploy adds the user on all nodes, as a live update."""
    from ops.users.edit import NewUser, add_user

    where = _file(file, context)
    pairs = _deploy(where, context, will_run=apply)
    new = NewUser(
        name=name,
        uid=uid,
        account=account,
        keys=tuple(_key(each) for each in key or []),
        iam=tuple(iam or []),
        admin=admin,
    )

    def edit() -> str:
        return f"{name} has the uid {add_user(where, new).users[name].uid} in {where}."

    _finish(edit, where, pairs, apply=apply, as_json=as_json)


@app.command(cls=Command, epilog="Example: `trainctl users lock alice`")
def lock(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Unlock the user.")] = False,
    file: File = None,
    context: Context = None,
    apply: Apply = False,
    as_json: Json = False,
) -> None:
    """Lock a user, whose data remains. The next deploy locks the user on all nodes, as a live update."""
    from ops.users.edit import lock_user

    where = _file(file, context)
    pairs = _deploy(where, context, will_run=apply)

    def edit() -> str:
        lock_user(where, name, locked=not undo)
        return f"{name} is {'no longer locked' if undo else 'locked'} in {where}."

    _finish(edit, where, pairs, apply=apply, as_json=as_json)


def _file(file: Path | None, context: list[str] | None) -> Path:
    from ops.users.edit import find_users_file

    return find_users_file(file, context or [], _client)


def _deploy(file: Path, context: list[str] | None, *, will_run: bool) -> list[str]:
    """Return the FLAG=VALUE pairs that deploy a users file; the others are known if the deploy will run."""
    from ops.account.clusters import describe_cluster
    from ops.context import read_context
    from ops.plan.remembered import kept_flags
    from training_cluster.paths import ROOT
    from training_cluster.stack_names import DEFAULT_CLUSTER

    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    pairs = [*(pair for pair in context or [] if not pair.startswith("users=")), f"users={name}"]
    given = read_context(pairs)
    if will_run:
        describe_cluster(str(given.get("cluster_name") or DEFAULT_CLUSTER), _client)
        kept_flags(pairs, _client, must_know=True)
    return pairs


def _client(service: str) -> Any:
    """Return a client. It fails here for a profile that does not exist, and the file can still be edited."""
    from ops.account.session import account_clients

    return account_clients()(service)


def _key(word: str) -> str:
    file = Path(word).expanduser()
    if word.startswith("ssh-") or " " in word or not file.is_file():
        return word
    return file.read_text(encoding="utf-8", errors="replace").strip()


def _finish(edit: Callable[[], str], file: Path, pairs: list[str], *, apply: bool, as_json: bool) -> None:
    from ops.account.deploy_command import deploy_command
    from ops.account.region_and_profile import with_account
    from ops.commands.plan import planned, run_deploy
    from ops.users.edit import undone_on_error

    if apply:
        with undone_on_error(file, edit) as done:
            quick = {"diff": False, "validate": False, "offline_prices": True}
            words = planned(pairs, None, yes=True, as_json=as_json, **quick)
        typer.echo(done, err=as_json)
        run_deploy(words, as_json=as_json)
    done, command = edit(), deploy_command(None, *pairs)
    if as_json:
        print_json({"done": done, "deploy": shlex.split(command)})
    else:
        typer.echo(f"{done}\n" + with_account(f"  type:   {command}"))
