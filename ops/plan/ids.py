"""Finds the ids that a deploy would render into the cluster config, for resources that exist already."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ops.account.own_resources import with_own_resources, without_unmade
from ops.account.session import ClientOf, unless
from ops.plan.deployed import OWNER_TAG, Deployed
from training_cluster.cluster.bundle import bootstrap_budget_s, build_bundle
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import Database, ResourceIds, existing_database, placeholders
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK

_FUTURE_IMAGE = "ami-0123456789abcdef0"


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
    ids, to_create = _ids(settings, deployed, client)
    config, unmade = without_unmade(render_cluster_config(settings=settings, ids=ids))
    stored = (deployed.config or {}).get("Tags") or []
    # The provider's own tag names the owner of the cluster, and never changes.
    config["Tags"] += [each for each in stored if each["Key"] == OWNER_TAG]
    return Rendered(config=config, not_created=(*unmade, *to_create))


def _ids(settings: Settings, deployed: Deployed, client: ClientOf) -> tuple[ResourceIds, tuple[str, ...]]:
    name, not_created = settings.cluster_name, list[str]()
    ids = placeholders(image_id=None, bootstrap_budget_s=bootstrap_budget_s(settings))

    def of(stack: str, output: str, flag: str | None) -> str:
        return flag or str(deployed.output(stack, output))

    ids = replace(
        ids,
        region=deployed.region,
        public_subnet_id=of(NETWORK_STACK, "PublicSubnetId", settings.public_subnet_id),
        private_subnet_id=of(NETWORK_STACK, "PrivateSubnetId", settings.private_subnet_id),
        node_security_group_id=of(NETWORK_STACK, "NodeSecurityGroupId", settings.security_group_id),
        key_name=settings.key_name or f"{name}-key",
        lustre_id=of(STORAGE_STACK, "FileSystemId", settings.fsx_id),
        efs_id=of(STORAGE_STACK, "EfsId", settings.efs_id),
        bucket_name=of(STORAGE_STACK, "BucketName", settings.bucket_name),
        bundle_sha256=_bundle_sha256(settings),
    )
    ids = with_own_resources(ids, settings, deployed.resources)
    if settings.node_image != "official":
        image = _image(settings, client)
        not_created += [] if image else ["the image"]
        ids = replace(ids, image_id=image or _FUTURE_IMAGE)
    if settings.accounting != "off":
        database = _database(settings, deployed)
        not_created += [] if database else ["the accounting database"]
        ids = replace(ids, database=database or ids.database)
    return ids, tuple(not_created)


@cache
def _bundle_sha256(settings: Settings) -> str:
    """Return the checksum of the scripts that a deploy would upload (training_cluster.cluster.scripts)."""
    return hashlib.sha256(build_bundle(settings=settings)).hexdigest()


def _image(settings: Settings, client: ClientOf) -> str | None:
    if settings.node_image != "build":
        return settings.node_image
    ssm = client("ssm")
    answer = unless(lambda: ssm.get_parameter(Name=image_parameter(settings)), "ParameterNotFound")
    return str(answer["Parameter"]["Value"]) if answer else None


def _database(settings: Settings, deployed: Deployed) -> Database | None:
    """Return the database that TrainingClusterStack would name; None if the deploy has to create it."""
    if settings.accounting != "new":
        return existing_database(settings)
    assert deployed.config
    known = deployed.config["Scheduling"]["SlurmSettings"].get("Database")
    if known is None or known["Uri"] != deployed.output(ACCOUNTING_STACK, "Database"):
        return None
    return Database(uri=known["Uri"], user=known["UserName"], secret_arn=known["PasswordSecretArn"])
