"""The accounting database that AccountingStack retains, with its network: reading, cost and deletion."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ops.account.session import ClientOf, every
from ops.account.stacks import Resource
from ops.parts import Parts
from ops.teardown.tagged import is_our_database_part, is_ours
from training_cluster.catalog import charges
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Prices
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.stack_names import ACCOUNTING_STACK, STACK_IDS

# Prefixes of AccountingStack's resources among those with our tag: CloudFormation builds names from the
# stack's name and the logical id (compared in a test).
GROUP_PREFIX = f"{ACCOUNTING_STACK}-Accounting"
DATABASE_PREFIX = GROUP_PREFIX.lower()
_CLUSTER = "AWS::RDS::DBCluster"
# Type -> command, in the order of deletion. A subnet's association is deleted with the subnet.
_DELETE = {
    "AWS::RDS::DBInstance": "aws rds delete-db-instance --db-instance-identifier {}",
    _CLUSTER: "aws rds delete-db-cluster --skip-final-snapshot --db-cluster-identifier {}",
    "AWS::RDS::DBSubnetGroup": "aws rds delete-db-subnet-group --db-subnet-group-name {}",
    "AWS::RDS::DBClusterParameterGroup": "aws rds delete-db-cluster-parameter-group "
    "--db-cluster-parameter-group-name {}",
    "AWS::SecretsManager::Secret": "aws secretsmanager delete-secret --secret-id {}",
    "AWS::EC2::SecurityGroup": "aws ec2 delete-security-group --group-id {}",
    "AWS::EC2::Subnet": "aws ec2 delete-subnet --subnet-id {}",
    "AWS::EC2::RouteTable": "aws ec2 delete-route-table --route-table-id {}",
}


def read_accounting(client: ClientOf, groups: Mapping[str, str], parts: Parts) -> tuple[Resource, ...]:
    """Find the retained resources.

    Args:
        groups: names of the security groups with our tag, by id.
        parts: records the services without an answer.
    """
    return (
        *parts.gather("databases", lambda: _database(client("rds"))),
        *parts.gather("secrets", lambda: _secrets(client("secretsmanager"))),
        *(
            Resource(type="AWS::EC2::SecurityGroup", physical_id=id_)
            for id_, name in groups.items()
            if name.startswith(GROUP_PREFIX)
        ),
        *parts.gather("subnets of the database", lambda: _network(client("ec2"))),
    )


def _network(ec2: Any) -> Iterator[Resource]:
    filters = [
        {"Name": f"tag:{CLUSTER_TAG}", "Values": [SHARED]},
        {"Name": "tag:Name", "Values": [f"{STACK_IDS[ACCOUNTING_STACK]}/*"]},
    ]
    for subnet in ec2.describe_subnets(Filters=filters)["Subnets"]:
        yield Resource(type="AWS::EC2::Subnet", physical_id=subnet["SubnetId"])
    for table in ec2.describe_route_tables(Filters=filters)["RouteTables"]:
        yield Resource(type="AWS::EC2::RouteTable", physical_id=table["RouteTableId"])


def database_addresses(rds: Any) -> Iterator[str]:
    """Yield HOST:PORT of each database with our tag."""
    for cluster in _clusters(rds):
        yield f"{cluster['Endpoint']}:{cluster['Port']}"


def _clusters(rds: Any) -> Iterator[Mapping[str, Any]]:
    clusters = every(rds, "describe_db_clusters", "DBClusters")
    return (each for each in clusters if is_ours(each.get("TagList", [])))


def _database(rds: Any) -> Iterator[Resource]:
    for cluster in _clusters(rds):
        for member in cluster.get("DBClusterMembers", []):
            yield Resource(type="AWS::RDS::DBInstance", physical_id=member["DBInstanceIdentifier"])
        yield Resource(type=_CLUSTER, physical_id=cluster["DBClusterIdentifier"])
    for operation, type_ in {
        "describe_db_subnet_groups": "AWS::RDS::DBSubnetGroup",
        "describe_db_cluster_parameter_groups": "AWS::RDS::DBClusterParameterGroup",
    }.items():
        kind = type_.removeprefix("AWS::RDS::")
        for each in every(rds, operation, f"{kind}s"):
            name = str(each[f"{kind}Name"])
            # The name is compared first because each look at tags is a request.
            if name.startswith(DATABASE_PREFIX) and is_our_database_part(each[f"{kind}Arn"], rds):
                yield Resource(type=type_, physical_id=name)


def _secrets(secretsmanager: Any) -> Iterator[Resource]:
    filters = [{"Key": "tag-key", "Values": [CLUSTER_TAG]}]
    for each in every(secretsmanager, "list_secrets", "SecretList", Filters=filters):
        if is_ours(each.get("Tags", [])) and "DeletedDate" not in each:
            yield Resource(type="AWS::SecretsManager::Secret", physical_id=each["ARN"])


def is_database(resource: Resource) -> bool:
    """Return True for the database itself."""
    return resource.type == _CLUSTER


def database_charge(resource: Resource, prices: Prices) -> Charge:
    """Return the least cost of the database."""
    acu = load_base().accounting_database.min_acu
    return charges.aurora(f"{resource.physical_id}  accounting database, {acu:g} ACU at least", prices, acu)


def database_commands(kept: Sequence[Resource]) -> Iterator[str]:
    """Yield the commands that delete the resources."""
    which = "--db-cluster-identifier"
    by_type = {type_: [each.physical_id for each in kept if each.type == type_] for type_ in _DELETE}
    for id_ in by_type[_CLUSTER]:
        yield f"aws rds modify-db-cluster --no-deletion-protection --apply-immediately {which} {id_}"
    for type_, ids in by_type.items():
        yield from map(_DELETE[type_].format, ids)
        if type_ == _CLUSTER:
            yield from (f"aws rds wait db-cluster-deleted {which} {id_}" for id_ in ids)
