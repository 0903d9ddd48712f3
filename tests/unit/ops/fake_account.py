"""An account in memory, for the commands that only ask: boto3's real clients, with answers made up.

botocore checks what is asked and what is answered against the services' own models, so a test cannot
pass with a call or an answer that AWS does not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.validate import ParamValidator

REGION = "us-east-1"


@dataclass(frozen=True)
class Refused:
    """An error that AWS answers."""

    code: str
    message: str = ""


class Account:
    """Answers by operation, such as `DescribeVpcs`: a dict, a function of what is asked, or Refused.

    Where two services have an operation of one name: `fsx.DescribeFileSystems`.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        # Who asks is known to each command that talks to the head node; messages ask for deployed flags.
        self.answers = {
            "GetCallerIdentity": {"Arn": "arn:aws:iam::123456789012:user/me"},
            "GetTemplate": Refused("ValidationError", "Stack with id TrainingClusterStack does not exist"),
            **answers,
        }
        self.asked: list[str] = []

    def client(self, service: str) -> Any:
        """Return boto3's client, which this account answers from now on."""
        client = _client(service)
        client.meta.account = self
        return client

    def answer(self, model: Any, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return status and body of one call."""
        self.asked.append(model.name)
        service = model.service_model.service_name
        answer = self.answers.get(f"{service}.{model.name}", self.answers.get(model.name))
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


@cache
def _client(service: str) -> Any:
    # One for all tests: to make one takes a tenth of a second.
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    client: Any = boto3.client(service, region_name=REGION, **keys)  # type: ignore[call-overload]
    service_id = client.meta.service_model.service_id.hyphenize()

    def note(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = params

    def answer(model: Any, context: dict[str, Any], **_: Any) -> Any:
        return client.meta.account.answer(model, context["asked"])

    client.meta.events.register(f"provide-client-params.{service_id}", note)
    client.meta.events.register(f"before-call.{service_id}", answer)
    return client
