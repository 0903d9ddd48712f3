"""AWS::Budgets::Budget, which ministack's engine lacks, as ministack's records of budgets, without costs."""

import json
from typing import Any

from rehearsal.local_aws.cloudformation.handlers import register, simple
from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.hook import Hook
from rehearsal.local_aws.emulators.moto_types import Created, Properties


def install() -> None:
    """Register the resource type."""
    register("AWS::Budgets::Budget", simple(_create, _delete, _update))


def _call(action: Hook, data: dict[str, Any]) -> None:
    status, _, body = hooks.find(action)(data)
    if status >= 400:  # noqa: PLR2004
        raise ValueError(json.loads(body).get("message") or json.loads(body).get("Message") or str(body))


def _create(logical_id: str, properties: Properties, stack: str) -> Created:
    budget = {"BudgetName": f"{stack}-{logical_id}"} | properties["Budget"]
    _call(ministack_hooks.CREATE_BUDGET, {**properties, "Budget": budget})
    return budget["BudgetName"], {}


def _update(name: str, _old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
    if new["Budget"].get("BudgetName", name) == name:
        _delete(name, new)
    return _create(logical_id, {**new, "Budget": {"BudgetName": name} | new["Budget"]}, stack)


def _delete(name: str, _: Properties) -> None:
    _call(ministack_hooks.DELETE_BUDGET, {"BudgetName": name})
