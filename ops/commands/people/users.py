"""The subcommands `trainctl users list`, `add` and `lock`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Command, Context, Group, Json, print_json

app = typer.Typer(
    cls=Group, help="List, add and lock the cluster's users in the users file.", no_args_is_help=True
)
File = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="Users file. Default: the file of the flag users, or users.yaml."
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Then run npx cdk deploy, a live update.")]


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
    new = NewUser(
        name=name,
        uid=uid,
        account=account,
        keys=tuple(_key(each) for each in key or []),
        iam=tuple(iam or []),
        admin=admin,
    )
    users = add_user(where, new)
    _finish(
        f"{name} has the uid {users.users[name].uid} in {where}.",
        where,
        context,
        apply=apply,
        as_json=as_json,
    )


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
    lock_user(where, name, locked=not undo)
    state = "no longer locked" if undo else "locked"
    _finish(f"{name} is {state} in {where}.", where, context, apply=apply, as_json=as_json)


def _file(file: Path | None, context: list[str] | None) -> Path:
    from ops.context import read_context
    from training_cluster.paths import ROOT

    if file is not None:
        return file.absolute()
    return ROOT / str(read_context(context or []).get("users") or "users.yaml")


def _key(word: str) -> str:
    file = Path(word).expanduser()
    if word.startswith("ssh-") or " " in word or not file.is_file():
        return word
    return file.read_text(encoding="utf-8", errors="replace").strip()


def _finish(done: str, file: Path, context: list[str] | None, *, apply: bool, as_json: bool) -> None:
    import shlex
    import subprocess

    from ops.account.region_and_profile import with_account
    from training_cluster.paths import ROOT

    given = [each for each in context or [] if not each.startswith("users=")]
    flags = [f"users={file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}", *given]
    command = [
        "npx",
        "cdk",
        "deploy",
        "TrainingClusterStack",
        *(word for each in flags for word in ("-c", each)),
    ]
    if as_json:
        print_json({"done": done, "deploy": command})
    else:
        typer.echo(done)
    if apply:
        # The region and the profile of this command line are in the environment.
        raise typer.Exit(subprocess.run(command, check=False, cwd=ROOT).returncode)
    if not as_json:
        typer.echo(with_account(f"  type:   {shlex.join(command)}"))
