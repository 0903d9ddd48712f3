"""One local AWS with our stacks, and the driver that runs cases there, one after another."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.account import LocalAccount, local_account
from rehearsal.deployed import read_deployed_cluster
from rehearsal.faults.assemblies import Assemblies
from rehearsal.narrator import Narrator
from rehearsal.pcluster_process import PclusterProcess
from training_cluster.paths import ROOT
from training_cluster.stack_names import FORMER_DEFAULT, STORAGE_STACK

BYSTANDER = FORMER_DEFAULT
"""Name of the deployed cluster, which no case may change. A deploy without a name would rename it."""
_DRIVER = Path(__file__).parent / "inside" / "driver.py"
_OWNER_TAG = "training-cluster:stack-id"
# A policy about volumes refuses a deploy without the organisation's tag.
_TEAM_TAG = {"Key": "team", "Value": "language"}


@dataclass(frozen=True, kw_only=True)
class Site(LocalAccount):
    """A local AWS with the whole app deployed."""

    assemblies: Assemblies
    bucket: str
    config: dict[str, Any]
    """Config of the deployed cluster as ParallelCluster stores it, with an organisation's tag for ours."""


@contextmanager
def deployed_site(
    folder: Path, marker: tuple[str, str], assemblies: Assemblies, narrator: Narrator
) -> Iterator[Site]:
    """Start a local AWS in `folder` and deploy the app there; stop it at the end."""
    with local_account(folder, marker=marker, narrator=narrator) as account:
        address, cdk = account.address, account.cdk
        app = assemblies.of({"cluster_name": BYSTANDER}, account.environment)
        cdk.run("deploy", "TrainingClusterStack", "--require-approval", "never", "--app", str(app))
        config = read_deployed_cluster(address, BYSTANDER).config
        config["Tags"] = [tag for tag in config["Tags"] if tag["Key"] != _OWNER_TAG] + [_TEAM_TAG]
        yield Site(
            **vars(account),
            assemblies=assemblies,
            bucket=account.outputs(STORAGE_STACK)["BucketName"],
            config=config,
        )


@contextmanager
def driver(site: Site, log: Path) -> Iterator[PclusterProcess]:
    """Start the driver of this site, which takes one case after another."""
    environment = site.environment | {
        "PYTHONPATH": str(ROOT / "assets" / "cluster_provider"),
        "PROGRESS_LOG_GROUP": "faults",
        "LOGS_BUCKET": site.bucket,
        "LOCAL_AWS_HEAD_NODE": str(site.address.head_node_behaviour),
    }
    site.client("logs").create_log_group(logGroupName=environment["PROGRESS_LOG_GROUP"])
    with PclusterProcess(_DRIVER, environment=environment, log=log, own_folder=True) as process:
        process.send({"bystander": BYSTANDER, "bucket": site.bucket, "config": site.config})
        yield process
