"""Databases: protected ones are not deleted, and those of RDS are records of ministack in moto's subnets.

No database of RDS runs, and its endpoint does not answer.
"""

from typing import Any

from rehearsal.local_aws.cloudformation.handlers import before_create, original, wrap
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Properties, ec2

_MIN_ZONES = 2
_TABLE = "AWS::DynamoDB::Table"

Subnets = tuple[list[dict[str, Any]], str]


def install() -> None:
    """Correct ministack's databases."""
    _keep_protected_tables()
    hooks.replace("DATABASE_SUBNETS", lambda _: find_subnets)
    before_create("AWS::RDS::DBSubnetGroup", _refuse_one_zone)
    clusters = original("AWS::RDS::DBCluster")

    def delete(id_: str, properties: Properties) -> None:
        if _is_protected_cluster(id_):
            raise ValueError(
                "Cannot delete protected Cluster, please disable deletion protection and try again."
            )
        clusters["delete"](id_, properties)

    wrap("AWS::RDS::DBCluster", delete=delete)


def find_subnets(subnet_ids: list[str]) -> Subnets | None:
    """Return subnets as RDS describes them, and their VPC; None if one is unknown or in another VPC."""
    known = {subnet.id: subnet for subnet in ec2().describe_subnets()}
    found = [known[id_] for id_ in subnet_ids if id_ in known]
    vpcs = {subnet.vpc_id for subnet in found}
    if len(found) != len(subnet_ids) or len(vpcs) != 1:
        return None
    members = [
        {
            "SubnetIdentifier": subnet.id,
            "SubnetAvailabilityZone": {"Name": subnet.availability_zone},
            "SubnetOutpost": {},
            "SubnetStatus": "Active",
        }
        for subnet in found
    ]
    return members, vpcs.pop()


def _is_protected_cluster(cluster: str) -> bool:
    clusters = client("rds")
    try:
        [found] = clusters.describe_db_clusters(DBClusterIdentifier=cluster)["DBClusters"]
    except clusters.exceptions.DBClusterNotFoundFault:  # it is already deleted
        return False
    return bool(found.get("DeletionProtection"))


def _refuse_one_zone(properties: Properties) -> None:
    members, _ = find_subnets(properties["SubnetIds"]) or ([], "")
    zones = sorted({member["SubnetAvailabilityZone"]["Name"] for member in members})
    if members and len(zones) < _MIN_ZONES:
        raise ValueError(
            "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. Current AZ "
            f"coverage: {', '.join(zones)}. Add subnets to cover at least {_MIN_ZONES} AZs."
        )


def _keep_protected_tables() -> None:
    """Let CloudFormation fail to delete a table of DynamoDB that is protected, as it does on AWS."""
    delete = original(_TABLE)["delete"]

    def delete_unprotected(physical_id: str, properties: Properties) -> None:
        if _is_protected_table(physical_id):
            raise ValueError(
                f"Resource cannot be deleted as it is currently protected against deletion: {physical_id}. "
                "Disable deletion protection first."
            )
        delete(physical_id, properties)

    wrap(_TABLE, delete=delete_unprotected)


def _is_protected_table(name: str) -> bool:
    tables = client("dynamodb")
    try:
        return bool(tables.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"))
    except tables.exceptions.ResourceNotFoundException:  # it is already deleted
        return False
