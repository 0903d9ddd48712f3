"""Fakes of AWS for the functions of custom resources: their common parts and their import."""

import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from training_cluster.paths import ASSETS

# Of a refusal: a line of CloudFormation's events.
MOST_CHARACTERS = 600


def refused(call: str, code: str, message: str) -> ClientError:
    """Return an error of AWS, as botocore raises it."""
    return ClientError({"Error": {"Code": code, "Message": message}}, call)


@dataclass
class FakeRegion:
    """A region with one stack; the fakes of more services are made from it."""

    stack_id: str = ""
    stack_answers: list[str | Exception] = field(default_factory=lambda: ["UPDATE_IN_PROGRESS"])
    """Statuses of the stack, or errors, one a call; the last one again and again."""
    stack_outputs: dict[str, str] = field(default_factory=dict)
    stack_calls: int = 0
    """How often somebody asked for the status."""
    throttled: set[str] = field(default_factory=set)
    """Other calls that are refused for good."""
    options: list[Any] = field(default_factory=list)
    """`config` of every client that was asked for."""

    def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace boto3 during one test."""
        monkeypatch.setattr(boto3, "client", self.client)

    def client(self, service: str, *, config: Any = None) -> types.SimpleNamespace:
        """Return a fake client, as boto3.client."""
        self.options.append(config)
        if service == "cloudformation":
            return types.SimpleNamespace(describe_stacks=self._describe_stacks)
        assert service == "ec2"
        return self.ec2()

    def ec2(self) -> types.SimpleNamespace:
        """Return the fake calls of EC2."""
        raise NotImplementedError

    def answers(self, call: str) -> None:
        """Raise what the caller gets when this call is throttled."""
        if call in self.throttled:
            raise refused(call, "RequestLimitExceeded", "Too many")

    def _describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's own name
        assert StackName == self.stack_id
        self.stack_calls += 1
        answer = self.stack_answers.pop(0) if len(self.stack_answers) > 1 else self.stack_answers[0]
        if isinstance(answer, Exception):
            raise answer
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.stack_outputs.items()]
        return {"Stacks": [{"StackStatus": answer} | ({"Outputs": outputs} if outputs else {})]}


def load(function: str) -> dict[str, Any]:
    """Import a function's modules by the plain names that they use, and leave no trace of it.

    Args:
        function: its folder in assets/.
    """
    code = ASSETS / function
    names = [path.stem for path in code.glob("*.py")]
    former = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)  # it would lie in the function's code
            patch.syspath_prepend(str(code))
            return {name: importlib.import_module(name) for name in names}
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(former)


def refusal(ask: Callable[..., Any], *args: Any, **more: Any) -> str:
    """Ask for what is refused; return the words, of which a person reads one line."""
    with pytest.raises(RuntimeError) as raised:
        ask(*args, **more)
    assert raised.value.__cause__ is None
    assert len(str(raised.value)) < MOST_CHARACTERS
    return str(raised.value)
