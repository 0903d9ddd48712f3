"""A failed first deploy of StorageStack, whose protection and retention must not block the next deploy."""

import shlex
import subprocess
import sys
import time
from pathlib import Path

from rehearsal.account import local_account
from rehearsal.cdk import CdkCli
from rehearsal.deployed import client
from rehearsal.faults.assemblies import Assemblies
from rehearsal.faults.cases import Case
from rehearsal.faults.verdict import Verdict
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT
from training_cluster.stack_names import STORAGE_STACK

CASE = Case(id="stacks: the first deploy of StorageStack fails", question={"first": True})
_STACK, _COMMAND = STORAGE_STACK, "aws cloudformation update-termination-protection"


def try_first_deploy(
    folder: Path, marker: tuple[str, str], assemblies: Assemblies, narrator: Narrator
) -> Verdict:
    """Let the deploy fail on a separate local AWS, run the printed command, and deploy again."""
    started = time.monotonic()
    with local_account(folder, marker=marker, narrator=narrator) as account:
        address, cdk, environment = account.address, account.cdk, account.environment
        app = assemblies.of({}, environment)
        address.lustre_quota_used_up.touch()
        failed = not _deploy(cdk, app)
        address.lustre_quota_used_up.unlink()
        ended, left, reasons = _status(address), _left(address), _reasons(address)
        printed = _printed(environment)
        _deploy(cdk, app)
        protected = "TerminationProtection is enabled" in (folder / "cdk-deploy.log").read_text()
        if printed:
            subprocess.run(shlex.split(printed), env=environment, check=True, capture_output=True)
        works = _deploy(cdk, app)
        wrong = {
            "the deploy did not fail": not failed,
            f"{_STACK} was not protected, so this case shows nothing": not protected,
            "no command was printed": not printed,
            "the next deploy failed": not works,
        }
        return Verdict(
            id=CASE.id,
            request="stacks",
            fired=True,
            ended=ended,
            next=_status(address),
            stuck=[what for what, holds in wrong.items() if holds],
            orphans=left,
            lost=[],
            reasons=reasons,
            seconds=round(time.monotonic() - started, 1),
            denied=denied_calls(address),
        )


def _deploy(cdk: CdkCli, app: Path) -> bool:
    try:
        cdk.run("deploy", "TrainingClusterStack", "--app", str(app), "--require-approval", "never")
    except RehearsalError:
        return False
    return True


def _status(address: LocalAwsAddress) -> str:
    return str(
        client(address, "cloudformation").describe_stacks(StackName=_STACK)["Stacks"][0]["StackStatus"]
    )


def _reasons(address: LocalAwsAddress) -> list[str]:
    events = client(address, "cloudformation").describe_stack_events(StackName=_STACK)["StackEvents"]
    return [str(e["ResourceStatusReason"]) for e in events if e["ResourceStatus"] == "CREATE_FAILED"]


def _left(address: LocalAwsAddress) -> list[str]:
    """List the buckets and file systems of a stack that was never created."""
    s3, efs = client(address, "s3"), client(address, "efs")
    buckets = [
        str(b["Name"]) for b in s3.list_buckets()["Buckets"] if b["Name"].startswith(STORAGE_STACK.lower())
    ]
    return buckets + [str(f["FileSystemId"]) for f in efs.describe_file_systems()["FileSystems"]]


def _printed(environment: dict[str, str]) -> str:
    """Return the command that `trainctl status` prints. It exits with 1, since there is no cluster."""
    done = subprocess.run(  # noqa: PLW1510
        [sys.executable, "-m", "ops", "status"], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    return next((line.strip() for line in done.stdout.splitlines() if _COMMAND in line), "")
