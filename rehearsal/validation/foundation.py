"""Resources that configs refer to: our deployed stacks, images and reservations."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ops.preflight.config_ids import known_ids
from ops.preflight.existing_network import read_existing_network
from rehearsal.cdk import CdkCli
from rehearsal.deployed import client
from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.validation.cases import NODES, Case
from training_cluster.cluster.resource_ids import Database, ResourceIds
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.rules.context import read_settings

# Flags of the one deploy, which creates network, storage, database, policies and placement group.
FLAGS = {"login_nodes": "1", "accounting": "new", "cpu_queue": "on"}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A region and a zone, by name, for which the local AWS has EC2's own data of offerings."""

    region: str
    zone: str


# The first has most families, the second the others (hpc7a, p5e, trn2).
SITES = (Site(region="us-east-1", zone="us-east-1c"), Site(region="us-east-2", zone="us-east-2b"))


class Foundation:
    """Resource ids for any case, on one local AWS.

    Args:
        address: bootstrapped local AWS on which FLAGS are deployed.
        zone: name of the zone of the deploy.
    """

    def __init__(self, address: LocalAwsAddress, zone: str) -> None:
        self._address, self._zone = address, zone
        self._ids = self._deployed()

    def _client(self, service: str) -> Any:
        return client(self._address, service)

    def _deployed(self) -> ResourceIds:
        """Find the ids as preflight does, without placeholders for what FLAGS do not need."""
        settings = read_settings(FLAGS)
        found = known_ids(settings, read_existing_network(settings, self._client), self._client)
        without: dict[str, Any] = {"metrics_policy_arn": None, "buckets_policy_arn": None}
        return replace(found, bootstrap_budget_s=0, more_placement_groups={}, **without)

    def suits(self, case: Case) -> bool:
        """Return True if EC2 has the instance type: in the zone if it is reserved, else in the region."""
        by, place = (
            ("availability-zone", self._zone) if case.needs_reservation else ("region", self._address.region)
        )
        return case.instance_type in self._offered(by, place)

    @cache  # noqa: B019  # lives as long as one run
    def _offered(self, location_type: str, location: str) -> frozenset[str]:
        pages = self._client("ec2").get_paginator("describe_instance_type_offerings")
        filters = [{"Name": "location", "Values": [location]}]
        found = pages.paginate(LocationType=location_type, Filters=filters)
        return frozenset(each["InstanceType"] for page in found for each in page["InstanceTypeOfferings"])

    def flags(self, case: Case) -> dict[str, str]:
        """Return the case's flags; values of placeholders are created on the local AWS."""
        made = {}
        text = str(case.flags)
        if "{reservation}" in text:
            made["reservation"] = self._reservation(case)
        if "{image}" in text:
            made["image"] = self.image(case.os_name)
        return {
            name: value.format(
                **made, group=self._ids.placement_group_name, secret=self._ids.database.secret_arn
            )
            if "{" in value and self._ids.database
            else value
            for name, value in case.flags.items()
        }

    def ids(self, settings: Settings) -> ResourceIds:
        """Return the ids for a case, as TrainingClusterStack would collect them."""
        image = settings.node_image
        if image == "official":
            return self._ids
        database = self._ids.database
        if settings.accounting not in {"off", "new"}:
            database = Database(
                uri=settings.accounting,
                user=settings.accounting_user,
                secret_arn=settings.accounting_secret or "",
            )
        image_id = self.image(settings.os_name) if image == "build" else image
        return replace(self._ids, image_id=image_id, database=database)

    def _reservation(self, case: Case) -> str:
        kind = "capacity-block" if "capacity-block" in case.flags["capacity"] else "reservation"
        tied = case.flags.get("placement_group") == "{group}" and kind == "reservation"
        return self._reserve(kind, case.instance_type, tied)

    @cache  # noqa: B019  # lives as long as one run
    def _reserve(self, kind: str, instance_type: str, tied: bool) -> str:
        ec2 = self._client("ec2")
        if kind == "capacity-block":
            offers = ec2.describe_capacity_block_offerings(
                InstanceType=instance_type, InstanceCount=NODES, CapacityDurationHours=24
            )["CapacityBlockOfferings"]
            here = [
                each["CapacityBlockOfferingId"] for each in offers if each["AvailabilityZone"] == self._zone
            ]
            if here:
                bought = ec2.purchase_capacity_block(
                    CapacityBlockOfferingId=here[0], InstancePlatform="Linux/UNIX"
                )
                return str(bought["CapacityReservation"]["CapacityReservationId"])
            # Not sold in blocks: with an existing reservation the library refuses for that reason.
        group = (
            f"arn:aws:ec2:{self._address.region}:{ACCOUNT}:placement-group/{self._ids.placement_group_name}"
        )
        made = ec2.create_capacity_reservation(
            InstanceType=instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=self._zone,
            InstanceCount=NODES,
            **({"PlacementGroupArn": group} if tied else {}),
        )
        return str(made["CapacityReservation"]["CapacityReservationId"])

    @cache  # noqa: B019  # lives as long as one run
    def image(self, os_name: str) -> str:
        """Create a custom AMI for an operating system, with the tags of the image pipeline."""
        return register_image(self._address, os_name)


def deploy(cdk: CdkCli, site: Site, output: Path) -> None:
    """Deploy FLAGS with the real CDK CLI, provider and library."""
    flags = FLAGS | {"zone": site.zone}
    context = [part for flag, value in flags.items() for part in ("-c", f"{flag}={value}")]
    cdk.run("deploy", "TrainingClusterStack", "--require-approval", "never", *context, output=output)


def register_image(address: LocalAwsAddress, os_name: str, *, version: str = PCLUSTER_VERSION) -> str:
    """Register an AMI that ParallelCluster accepts for an operating system; return its id."""
    ec2 = client(address, "ec2")
    image_id = ec2.register_image(
        Name=f"own-{os_name}-{version}",
        Architecture="x86_64",
        RootDeviceName="/dev/sda1",
        VirtualizationType="hvm",
        EnaSupport=True,
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}],
    )["ImageId"]
    tags = {
        "parallelcluster:version": version,
        "parallelcluster:os": os_name,
        "parallelcluster:build_status": "available",
    }
    ec2.create_tags(Resources=[image_id], Tags=[{"Key": k, "Value": v} for k, v in tags.items()])
    return str(image_id)
