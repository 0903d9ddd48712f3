"""A failed first deploy of a protected stack, whose protection and retention must not block the next one."""

import time
from dataclasses import dataclass
from pathlib import Path

from rehearsal.account import LocalAccount, local_account
from rehearsal.deployed import client
from rehearsal.faults.assemblies import Assemblies
from rehearsal.faults.cases import Case
from rehearsal.faults.typed import advice, deploy, events, plan_steps, type_commands
from rehearsal.faults.verdict import Verdict
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.narrator import Narrator
from training_cluster.stack_names import ACCOUNTING_STACK, STORAGE_STACK


@dataclass(frozen=True, kw_only=True)
class _First:
    """A first deploy in which the quota of a resource type is used up."""

    target: str
    """Id of the stack to deploy."""
    flags: dict[str, str]
    fault: str
    advised: str
    """Command that `trainctl status` prints."""


_FIRST = {
    STORAGE_STACK: _First(
        target="TrainingClusterStack",
        flags={},
        fault="AWS::FSx::FileSystem",
        advised="aws cloudformation update-termination-protection",
    ),
    ACCOUNTING_STACK: _First(
        target="AccountingStack",
        flags={"accounting": "new"},
        fault="AWS::RDS::DBInstance",
        advised="trainctl destroy --plan",
    ),
}
CASES = [Case(id=f"stacks: the first deploy of {name} fails", question={"first": name}) for name in _FIRST]
_STEPS = ("AccountingStack", "The accounting database")
"""Beginnings of the titles of the plan's steps that the advice names."""


def try_first_deploy(
    case: Case, folder: Path, marker: tuple[str, str], assemblies: Assemblies, narrator: Narrator
) -> Verdict:
    """Let the deploy fail on a separate local AWS, type what is advised, and deploy again."""
    started, stack = time.monotonic(), str(case.question["first"])
    first = _FIRST[stack]
    with local_account(folder, marker=marker, narrator=narrator) as account:
        address, app = account.address, assemblies.of(first.flags, account.environment)
        fault = address.quota_used_up(first.fault)
        fault.touch()
        failed = not deploy(account, app, first.target)
        fault.unlink()
        ended, left = _status(address, stack), _left(address)
        reasons = events(address, stack, "CREATE_FAILED")
        printed = advice(account, first.advised)
        blocked = not deploy(account, app, first.target)
        if printed:
            _follow(printed, account, app)
        works = deploy(account, app, first.target)
        databases = len(client(address, "rds").describe_db_clusters()["DBClusters"])
        wrong = {
            "the deploy did not fail": not failed,
            f"{stack} was not protected, so this case shows nothing": not blocked,
            "no command was printed": not printed,
            "the next deploy failed": not works,
            f"{databases} databases": databases > 1,
        }
        return Verdict(
            id=case.id,
            request="stacks",
            fired=True,
            ended=ended,
            next=_status(address, stack),
            stuck=[what for what, holds in wrong.items() if holds],
            orphans=left,
            lost=[],
            reasons=reasons,
            seconds=round(time.monotonic() - started, 1),
            denied=denied_calls(address),
        )


def _follow(printed: str, account: LocalAccount, app: Path) -> None:
    """Type the printed command; of a plan, the steps that the advice names."""
    if not printed.startswith("trainctl"):
        type_commands([printed], account, app)
        return
    for title, commands in plan_steps(account):
        if title.startswith(_STEPS):
            type_commands(commands, account, app)


def _status(address: LocalAwsAddress, stack: str) -> str:
    found = client(address, "cloudformation").describe_stacks(StackName=stack)
    return str(found["Stacks"][0]["StackStatus"])


def _left(address: LocalAwsAddress) -> list[str]:
    """List the buckets and file systems of a stack that was never created."""
    s3, efs = client(address, "s3"), client(address, "efs")
    if client(address, "rds").describe_db_clusters()["DBClusters"]:
        return []  # the storage was created before, by the same deploy
    buckets = [
        str(b["Name"]) for b in s3.list_buckets()["Buckets"] if b["Name"].startswith(STORAGE_STACK.lower())
    ]
    return buckets + [str(f["FileSystemId"]) for f in efs.describe_file_systems()["FileSystems"]]
