"""A failed first deploy of a protected stack, whose protection and retention must not block the next one."""

from dataclasses import dataclass
from pathlib import Path

from rehearsal.account import LocalAccount
from rehearsal.faults.assemblies import Assemblies
from rehearsal.faults.cases import Case
from rehearsal.faults.typed import advice, deploy, plan_steps, type_commands
from rehearsal.faults.verdict import Verdict
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


def try_first_deploy(case: Case, account: LocalAccount, assemblies: Assemblies) -> Verdict:
    """Let the deploy fail, type what is advised, and deploy again."""
    stack = str(case.question["first"])
    first = _FIRST[stack]
    app, fault = assemblies.of(first.flags, account.environment), account.address.quota_used_up(first.fault)
    fault.touch()
    failed = not deploy(account, app, first.target)
    fault.unlink()
    ended, left = account.status(stack), _left(account)
    reasons = account.reasons(stack, "CREATE_FAILED")
    printed = advice(account, first.advised)
    blocked = not deploy(account, app, first.target)
    if printed:
        _follow(printed, account, app)
    works = deploy(account, app, first.target)
    databases = len(account.client("rds").describe_db_clusters()["DBClusters"])
    wrong = {
        "the deploy did not fail": not failed,
        f"{stack} was not protected, so this case shows nothing": not blocked,
        "no command was printed": not printed,
        "the next deploy failed": not works,
        f"{databases} databases": databases > 1,
    }
    return Verdict(
        id=case.id,
        ended=ended,
        next=account.status(stack),
        stuck=[what for what, holds in wrong.items() if holds],
        orphans=left,
        reasons=reasons,
    )


def _follow(printed: str, account: LocalAccount, app: Path) -> None:
    """Type the printed command; of a plan, the steps that the advice names."""
    if not printed.startswith("trainctl"):
        type_commands([printed], account, app)
        return
    for title, commands in plan_steps(account):
        if title.startswith(_STEPS):
            type_commands(commands, account, app)


def _left(account: LocalAccount) -> list[str]:
    """List the buckets and file systems of a stack that was never created."""
    s3, efs = account.client("s3"), account.client("efs")
    if account.client("rds").describe_db_clusters()["DBClusters"]:
        return []  # the storage was created before, by the same deploy
    buckets = [
        str(b["Name"]) for b in s3.list_buckets()["Buckets"] if b["Name"].startswith(STORAGE_STACK.lower())
    ]
    return buckets + [str(f["FileSystemId"]) for f in efs.describe_file_systems()["FileSystems"]]
