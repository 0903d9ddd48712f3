"""The subcommands `trainctl users list`, `add` and `lock`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Context, Json, print_json

app = typer.Typer(
    help="People of the cluster: list, add and lock them in the file of users.", no_args_is_help=True
)
File = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="File of users. Default: that of the flag users, or users.yaml."
    ),
]
Apply = Annotated[bool, typer.Option("--apply", help="Then deploy it: npx cdk deploy, a live update.")]


@app.command("list")
def list_users(file: File = None, context: Context = None, as_json: Json = False) -> None:
    """List the people and project accounts of the file of users."""
    from ops.users.list import render_list
    from training_cluster.users.file import read_users

    users = read_users(str(_file(file, context)))
    if as_json:
        return print_json(users)
    return typer.echo(render_list(users))


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the person on the cluster.")],
    *,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="A .pub file, or its line; may be repeated."),
    ] = None,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Project account.")] = None,
    uid: Annotated[
        int | None, typer.Option(metavar="UID", help="Default: one more than the highest.")
    ] = None,
    iam: Annotated[
        list[str] | None,
        typer.Option("--iam", metavar="ARN", help="IAM user, role or name of a session; may be repeated."),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May use sudo on all nodes.")] = False,
    file: File = None,
    context: Context = None,
    apply: Apply = False,
    as_json: Json = False,
) -> None:
    """Add a person to the file of users; the next deploy applies it on all nodes, live."""
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


@app.command()
def lock(
    name: Annotated[str, typer.Argument(help="Name of the person.")],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let the person in again.")] = False,
    file: File = None,
    context: Context = None,
    apply: Apply = False,
    as_json: Json = False,
) -> None:
    """Lock a person, whose data stay; the next deploy applies it on all nodes, live."""
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
