"""Three deploys to the local AWS: the first one, an update of one flag, an update after a changed script."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.subjects.provider import MARKER, count_calls
from rehearsal.account import LocalAccount, local_account
from rehearsal.cdk import CdkCli
from rehearsal.narrator import Narrator
from training_cluster.paths import ROOT

_PROJECT = (
    "assets",
    "cluster_configs",
    "constructs",
    "stacks",
    "app.py",
    "cdk.json",
    "requirements-pcluster.txt",
)
_SYNTHESIS = re.compile(r"Synthesis time: ([\d.]+)s")
_SILENT = Narrator(Console(quiet=True))


@dataclass(frozen=True, kw_only=True)
class Deploy:
    """One `cdk deploy`."""

    seconds: float
    synth_s: float
    """The part of it before the first call of CloudFormation, as the CDK CLI prints it."""
    calls: int
    """Number of requests that the local AWS received."""


def deploy_three(folder: Path) -> dict[str, Deploy]:
    """Deploy a cluster, then with one more node, then with an edited step of the bootstrap.

    Args:
        folder: takes all files of the local AWS; created if missing.

    Raises:
        RehearsalError: the local AWS does not start, or a deploy fails.
    """
    with local_account(folder / "aws", marker=(MARKER, str(folder)), narrator=_SILENT) as account:
        edited = _edited_project(folder / "project")
        paths = {"PYTHONPATH": f"{edited}:{edited / 'constructs'}"}
        other = CdkCli(
            project=edited,
            environment=account.environment | paths,
            logs=account.address.folder,
            narrator=_SILENT,
        )
        return {
            "deploy": _deploy(account, account.cdk, nodes=2),
            "update of one flag": _deploy(account, account.cdk, nodes=3),
            "update after a changed script": _deploy(account, other, nodes=3),
        }


def _deploy(account: LocalAccount, cdk: CdkCli, *, nodes: int) -> Deploy:
    folder = account.address.folder
    before, began = count_calls(account.address), time.perf_counter()
    flags = ("-c", f"nodes={nodes}", "--require-approval", "never")
    cdk.run("deploy", "TrainingClusterStack", *flags, output=folder / "cdk.out")
    found = _SYNTHESIS.search((folder / "cdk-deploy.log").read_text(encoding="utf-8"))
    return Deploy(
        seconds=round(time.perf_counter() - began, 1),
        synth_s=float(found[1]) if found else 0.0,
        calls=count_calls(account.address) - before,
    )


def _edited_project(folder: Path) -> Path:
    """Copy the app, in which somebody has edited a step of the bootstrap."""
    folder.mkdir(parents=True)
    for name in _PROJECT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    step = next((folder / "assets" / "bootstrap" / "steps").glob("30-*.sh"))
    step.write_text(step.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    return folder
