"""Functions of custom resources in this process, with the local AWS; the state of their stack is made up."""

import datetime
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from ops.asset_code import asset_code
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.paths import ASSETS

# Of a refusal: a line of CloudFormation's events.
MOST_CHARACTERS = 600
_SERVICES = ("cloudformation", "ec2", "rds", "resource-groups")


class FunctionAccount(Account):
    """The account that a function runs in, in place of boto3's during a test."""

    def __init__(self, stack_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__({"DescribeStacks": self._describe_stacks}, real=True)
        self.stack_id = stack_id
        self.statuses: list[str | Refused] = ["UPDATE_IN_PROGRESS"]
        """Statuses of the stack, or errors, one a call; the last one is repeated."""
        self.outputs: dict[str, str] = {}
        """Outputs of the stack."""
        self.configs: list[Any] = []
        """`config` of every client."""
        self._clients = {service: self.client(service) for service in _SERVICES}
        monkeypatch.setattr(boto3, "client", self._make_client)

    def _make_client(self, service: str, *, config: Any = None) -> Any:
        self.configs.append(config)
        return self._clients[service]

    def throttle(self, *calls: str) -> None:
        """Refuse these calls for good."""
        self.answers |= dict.fromkeys(calls, Refused("RequestLimitExceeded", "Too many"))

    def _describe_stacks(self, asked: dict[str, Any]) -> Any:
        assert asked == {"StackName": self.stack_id}
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if isinstance(status, Refused):
            return status
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        made = datetime.datetime(2026, 11, 5, tzinfo=datetime.UTC)
        stack = {"StackName": self.stack_id, "CreationTime": made, "StackStatus": status}
        return {"Stacks": [stack | ({"Outputs": outputs} if outputs else {})]}


def load(function: str) -> dict[str, Any]:
    """Import all modules of a function's folder in assets/."""
    return vars(asset_code(function, *(path.stem for path in (ASSETS / function).glob("*.py"))))


def refusal(ask: Callable[..., Any], *args: Any, **more: Any) -> str:
    """Ask for what is refused; return the words, of which a person reads one line."""
    with pytest.raises(RuntimeError) as raised:
        ask(*args, **more)
    assert raised.value.__cause__ is None
    assert len(str(raised.value)) < MOST_CHARACTERS
    return str(raised.value)
