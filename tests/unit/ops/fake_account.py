"""An account in memory: boto3's real clients, with answers made up or by the local AWS of this process.

botocore checks what is asked and what is answered against the services' own models, so a test cannot
pass with a call or an answer that AWS does not know.
"""

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, SimpleNamespace
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config
from botocore.validate import ParamValidator

from tests.in_process import ACCESS_KEY, aws

REGION = "us-east-1"
READS = ("Describe", "List", "Get", "Head")
"""Operations that change nothing begin with these."""


@dataclass(frozen=True)
class Refused:
    """An error that AWS answers."""

    code: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class FakeStack:
    """A stack that CloudFormation describes, without creating its resources."""

    template: Mapping[str, Any] | str = field(default_factory=dict)
    resources: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Type and physical id of each, by logical id."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)
    """Other members of the description."""


def stack_answers(stacks: Mapping[str, FakeStack]) -> dict[str, Any]:
    """Return CloudFormation's answers, by operation, in a region with these stacks alone."""

    def described(name: str) -> dict[str, Any]:
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in stacks[name].outputs.items()]
        made = {"StackName": name, "StackStatus": "CREATE_COMPLETE", "CreationTime": "2026-01-01"}
        return made | {"Outputs": outputs, **stacks[name].members}

    def of_one(answer: Callable[[str], dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
        def checked(asked: dict[str, Any]) -> Any:
            if (name := asked["StackName"]) in stacks:
                return answer(name)
            return Refused("ValidationError", f"Stack with id {name} does not exist")

        return checked

    def template(name: str) -> dict[str, Any]:
        found = stacks[name].template
        return {"TemplateBody": found if isinstance(found, str) else json.dumps(found)}

    def resources(name: str) -> dict[str, Any]:
        state = {"ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": "2026-01-01"}
        return {
            "StackResourceSummaries": [
                state | {"LogicalResourceId": id_, "ResourceType": type_, "PhysicalResourceId": physical}
                for id_, (type_, physical) in stacks[name].resources.items()
            ]
        }

    one = of_one(lambda name: {"Stacks": [described(name)]})
    return {
        "DescribeStacks": lambda asked: (
            one(asked) if "StackName" in asked else {"Stacks": [described(name) for name in stacks]}
        ),
        "GetTemplate": of_one(template),
        "ListStackResources": of_one(resources),
    }


class Account:
    """Answers by operation, such as `DescribeVpcs`: a dict, a function of what is asked, or Refused.

    Where two services have an operation of one name: `fsx.DescribeFileSystems`.

    Args:
        real: True where the local AWS (tests/in_process.py) answers the operations that are not in answers.
    """

    def __init__(self, answers: Mapping[str, Any] = MappingProxyType({}), *, real: bool = False) -> None:
        self.real = real
        self.amended: dict[str, Callable[[dict[str, Any]], Any]] = {}
        """Changes of the local AWS's answers, for states of AWS that it cannot have."""
        # Who asks is known to each command that talks to the head node; messages ask for deployed flags.
        made_up = {
            "GetCallerIdentity": {"Arn": "arn:aws:iam::123456789012:user/me"},
            "GetTemplate": Refused("ValidationError", "Stack with id TrainingClusterStack does not exist"),
        }
        self.answers = dict(answers) if real else {**made_up, **answers}
        self.asked: list[str] = []
        self.memory: dict[tuple[str, ...], bytes] | None = None
        """The local AWS's answers since the last change, where a test asks the same things many times."""

    def client(self, service: str) -> Any:
        """Return boto3's client, which this account answers from now on."""
        client = _client(service)
        client.meta.account = self
        return client

    def answer(self, model: Any, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """Return status and body of one call; None where the local AWS answers it."""
        self.asked.append(model.name)
        service = model.service_model.service_name
        answer = self.answers.get(f"{service}.{model.name}", self.answers.get(model.name))
        if answer is None and self.real:
            return self._recall(model, asked)
        assert answer is not None, f"nobody said what {service} answers to {model.name}"
        said = answer(asked) if callable(answer) else answer
        if isinstance(said, Refused):
            return SimpleNamespace(status_code=400), {
                "Error": {"Code": said.code, "Message": said.message},
                "ResponseMetadata": {},
            }
        wrong = ParamValidator().validate(said, model.output_shape)
        assert not wrong.has_errors(), f"{model.name}: {wrong.generate_report()}"
        return SimpleNamespace(status_code=200), {**said, "ResponseMetadata": {}}

    def _recall(self, model: Any, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        if self.memory is None:
            return None
        if not model.name.startswith(READS):
            self.memory = {}
        if (kept := self.memory.get(_key(model, asked))) is None:
            return None
        parsed = pickle.loads(kept)
        return SimpleNamespace(status_code=parsed["ResponseMetadata"]["HTTPStatusCode"]), parsed

    def receive(self, model: Any, asked: dict[str, Any], parsed: dict[str, Any]) -> None:
        """Keep the local AWS's answer to a read, and amend it."""
        is_kept = model.name.startswith(READS) and parsed["ResponseMetadata"]
        # Stacks change by themselves.
        if self.memory is not None and is_kept and model.service_model.service_name != "cloudformation":
            self.memory.setdefault(_key(model, asked), pickle.dumps(parsed))
        names = (f"{model.service_model.service_name}.{model.name}", model.name)
        if change := next((self.amended[name] for name in names if name in self.amended), None):
            change(parsed)
            metadata = parsed.pop("ResponseMetadata")
            wrong = ParamValidator().validate(parsed, model.output_shape)
            assert not wrong.has_errors(), f"{model.name}: {wrong.generate_report()}"
            parsed["ResponseMetadata"] = metadata


def _key(model: Any, asked: dict[str, Any]) -> tuple[str, ...]:
    return model.service_model.service_name, model.name, repr(asked)


@cache
def _client(service: str) -> Any:
    # One for all tests: to make one takes a tenth of a second.
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": "none"}
    paths = Config(s3={"addressing_style": "path"})
    client: Any = boto3.client(service, region_name=REGION, config=paths, **keys)  # type: ignore[call-overload]
    service_id = client.meta.service_model.service_id.hyphenize()

    def note(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = params

    def answer(model: Any, context: dict[str, Any], **_: Any) -> Any:
        return client.meta.account.answer(model, context["asked"])

    def send(request: AWSPreparedRequest, **_: Any) -> Any:
        return aws().answer(request)

    def receive(model: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        client.meta.account.receive(model, context["asked"], parsed)

    client.meta.events.register(f"provide-client-params.{service_id}", note)
    client.meta.events.register(f"before-call.{service_id}", answer)
    client.meta.events.register("before-send", send)
    client.meta.events.register_first(f"after-call.{service_id}", receive)
    return client
