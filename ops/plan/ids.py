"""Renders the cluster config of a deploy with the ids of resources that exist already."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ops.account.image_stacks import node_image_id
from ops.account.session import ClientOf
from ops.plan.deployed import OWNER_TAG, Deployed
from training_cluster.cluster.bundle import build_bundle
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.deployed_ids import Existing, deployed_ids, without_unmade
from training_cluster.cluster.resource_ids import PLACEHOLDERS, Database, existing_database
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import ACCOUNTING_STACK

_FUTURE = replace(PLACEHOLDERS, image_id="ami-0123456789abcdef0", bootstrap_budget_s=0)


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A cluster config, and the resources in it that the deploy would create first."""

    config: Mapping[str, Any]
    not_created: tuple[str, ...]


def render_config(settings: Settings, deployed: Deployed, client: ClientOf) -> Rendered:
    """Render the config of a deployed cluster like a deploy with these flags.

    Raises:
        ConfigurationError: the flags contradict each other.
        botocore's errors.
    """
    existing = Existing(
        region=deployed.region,
        outputs={name: stack.outputs for name, stack in deployed.stacks.items()},
        own={each.logical_id: each.physical_id for each in deployed.resources},
        database=_database(settings, deployed),
        image_id=node_image_id(settings, client),
    )
    ids, to_create = deployed_ids(settings, existing, bundle_sha256=_bundle_sha256(settings)), list[str]()
    if settings.node_image != "official" and ids.image_id is None:
        ids, to_create = replace(ids, image_id=_FUTURE.image_id), ["the image"]
    if settings.accounting != "off" and ids.database is None:
        ids, to_create = replace(ids, database=_FUTURE.database), [*to_create, "the accounting database"]
    config, unmade = without_unmade(render_cluster_config(settings=settings, ids=ids))
    stored = (deployed.config or {}).get("Tags") or []
    # The provider's own tag names the owner of the cluster, and never changes.
    config["Tags"] += [each for each in stored if each["Key"] == OWNER_TAG]
    return Rendered(config=config, not_created=(*unmade, *to_create))


@cache
def _bundle_sha256(settings: Settings) -> str:
    """Return the checksum of the scripts that a deploy would upload (training_cluster.cluster.scripts)."""
    return hashlib.sha256(build_bundle(settings=settings, config=config_before_deploy(settings))).hexdigest()


def _database(settings: Settings, deployed: Deployed) -> Database | None:
    """Return the database that TrainingClusterStack would name; None if the deploy has to create it."""
    if settings.accounting != "new":
        return existing_database(settings)
    assert deployed.config
    known = deployed.config["Scheduling"]["SlurmSettings"].get("Database")
    if known is None or known["Uri"] != deployed.output(ACCOUNTING_STACK, "Database"):
        return None
    return Database(uri=known["Uri"], user=known["UserName"], secret_arn=known["PasswordSecretArn"])
