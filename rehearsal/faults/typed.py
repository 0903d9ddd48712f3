"""The commands after a refusal or a failure: deploys, and commands that trainctl prints."""

import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from rehearsal.account import LocalAccount
from training_cluster.paths import ROOT

_TITLE = re.compile(r"# \d+\. (.*)")
_DESTROY = "npx cdk destroy "


def deploy(account: LocalAccount, app: Path, stack: str) -> bool:
    """Run `cdk deploy` of a synthesised app; return True if it succeeded."""
    return account.succeeds("deploy", stack, "--app", str(app), "--require-approval", "never")


def advice(account: LocalAccount, command: str) -> str:
    """Return the line of `trainctl status` with a command; it exits with 1, since there is no cluster."""
    lines = account.trainctl("status").stdout.splitlines()
    return next((line.strip() for line in lines if command in line), "")


def plan_steps(account: LocalAccount) -> Iterator[tuple[str, list[str]]]:
    """Yield the steps of `trainctl destroy --plan`: title and commands of each."""
    for block in account.trainctl("destroy", "--plan").stdout.split("\n\n"):
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
