"""The commands after a refusal or a failure: deploys, and commands that trainctl prints."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rehearsal.account import LocalAccount
from rehearsal.deployed import client
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

_TITLE = re.compile(r"# \d+\. (.*)")
_DESTROY = "npx cdk destroy "


def deploy(account: LocalAccount, app: Path, stack: str) -> bool:
    """Run `cdk deploy` of a synthesised app; return True if it succeeded."""
    try:
        account.cdk.run("deploy", stack, "--app", str(app), "--require-approval", "never")
    except RehearsalError:
        return False
    return True


def events(address: LocalAwsAddress, stack: str, status: str) -> list[str]:
    """Return the reasons of a stack's events whose status ends so, the newest first."""
    pages = client(address, "cloudformation").get_paginator("describe_stack_events")
    found = [event for page in pages.paginate(StackName=stack) for event in page["StackEvents"]]
    return [str(e["ResourceStatusReason"]) for e in found if e["ResourceStatus"].endswith(status)]


def advice(account: LocalAccount, command: str) -> str:
    """Return the line of `trainctl status` with a command; it exits with 1, since there is no cluster."""
    lines = _trainctl(account, "status").splitlines()
    return next((line.strip() for line in lines if command in line), "")


def plan_steps(account: LocalAccount) -> Iterator[tuple[str, list[str]]]:
    """Yield the steps of `trainctl destroy --plan`: title and commands of each."""
    for block in _trainctl(account, "destroy", "--plan").split("\n\n"):
        lines = block.strip().splitlines()
        if lines and (title := _TITLE.match(lines[0])):
            yield title[1], [each for each in lines[1:] if not each.startswith("#")]


def type_commands(commands: Iterable[str], account: LocalAccount, app: Path) -> None:
    """Type printed commands; CDK's read the synthesised app, and are not asked to confirm.

    Raises:
        AssertionError: a command failed.
    """
    for command in commands:
        if command.startswith(_DESTROY):
            stack = shlex.split(command.removeprefix(_DESTROY))[0]
            account.cdk.run("destroy", stack, "--app", str(app), "--force")
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            env=account.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr.strip()}"


def _trainctl(account: LocalAccount, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ops", *arguments],
        env=account.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
