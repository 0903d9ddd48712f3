"""Lists the commands that delete the accounting database and its network. Pure."""

from collections.abc import Iterable, Iterator

from ops.account.stacks import Resource, Stack
from ops.teardown.step import Step, destroy_stack_commands

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


def accounting_steps(stack: Stack | None, kept: Iterable[Resource]) -> Iterator[Step]:
    """Yield the steps for AccountingStack, or for the resources that it retained."""
    if stack:
        yield Step(
            title="AccountingStack: the database is kept",
            commands=destroy_stack_commands(stack, "accounting=new"),
        )
    by_type = {type_: [each.physical_id for each in kept if each.type == type_] for type_ in _DELETE}
    yield Step(
        title="The accounting database, with the history of all jobs",
        commands=tuple(_commands(by_type)),
        is_data_lost=bool(by_type[_CLUSTER]),
    )


def _commands(by_type: dict[str, list[str]]) -> Iterator[str]:
    which = "--db-cluster-identifier"
    for id_ in by_type[_CLUSTER]:
        yield f"aws rds modify-db-cluster --no-deletion-protection --apply-immediately {which} {id_}"
    for type_, ids in by_type.items():
        yield from map(_DELETE[type_].format, ids)
        if type_ == _CLUSTER:
            yield from (f"aws rds wait db-cluster-deleted {which} {id_}" for id_ in ids)
