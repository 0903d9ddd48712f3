"""AWS::Budgets::Budget, which ministack's engine lacks, as ministack's records of budgets, without costs."""

from typing import Any

from botocore.exceptions import ClientError

from rehearsal.local_aws.address import ACCOUNT
from rehearsal.local_aws.cloudformation.handlers import register, simple
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties


def install() -> None:
    """Register the resource type."""
    register("AWS::Budgets::Budget", simple(_create, _delete, _update))


def _create(logical_id: str, properties: Properties, stack: str) -> Created:
    budget = {"BudgetName": f"{stack}-{logical_id}"} | properties["Budget"]
    _call("create_budget", **{**properties, "Budget": budget})
    return budget["BudgetName"], {}


def _update(name: str, _old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
    if new["Budget"].get("BudgetName", name) == name:
        _delete(name, new)
    return _create(logical_id, {**new, "Budget": {"BudgetName": name} | new["Budget"]}, stack)


def _delete(name: str, _: Properties) -> None:
    _call("delete_budget", BudgetName=name)


def _call(operation: str, **parameters: Any) -> None:
    try:
        getattr(client("budgets"), operation)(AccountId=ACCOUNT, **parameters)
    except ClientError as error:
        raise ValueError(error.response["Error"]["Message"]) from None
