"""A fake of boto3 for the provider: AWS's data in memory, and faults on request."""

# ruff: noqa: ARG002, N803 - boto3's own argument names
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

from tests.unit.assets.cluster_provider.fakes.library import HEAD_NODE

PARAMETER, LOG_GROUP, BUCKET = "/progress", "progress-log", "bucket"
PARAMETER_BYTES = 4096


def client_error(code: str, operation: str = "AnyCall") -> ClientError:
    """Build boto3's error of that code."""
    return ClientError({"Error": {"Code": code, "Message": "so it is told"}}, operation)


class ParameterNotFoundError(ClientError):
    """A copy of the error in `ssm.exceptions`."""


class StreamExistsError(ClientError):
    """A copy of the error in `logs.exceptions`."""


@dataclass
class FakeAws:
    """A fake of `boto3.client`, as far as the provider uses it."""

    parameters: dict[str, str] = field(default_factory=dict)
    log: dict[str, list[str]] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    console: str | None = "Linux boots"
    is_nitro: bool = True
    """Of the head node's instance: whether EC2 has its console as it is now."""
    parent_status: str = "UPDATE_IN_PROGRESS"
    invocations: list[dict[str, Any] | ClientError] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    """Services (`ssm`) or calls (`ssm.put_parameter`) that get no connection."""
    denied: dict[str, str] = field(default_factory=dict)
    """Error code by call."""
    throttled: dict[str, int] = field(default_factory=dict)
    """How often, by call, before it passes."""

    def client(self, service: str) -> types.SimpleNamespace:
        exceptions = types.SimpleNamespace(
            ParameterNotFound=ParameterNotFoundError, ResourceAlreadyExistsException=StreamExistsError
        )
        prefix = f"{service}_"
        calls = {
            name.removeprefix(prefix): self._faulty(name.replace("_", ".", 1), getattr(self, name))
            for name in dir(self)
            if name.startswith(prefix)
        }
        return types.SimpleNamespace(exceptions=exceptions, **calls)

    def _faulty(self, call: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def answer_or_fail(**arguments: Any) -> Any:
            if {call, call.partition(".")[0]} & self.unreachable:
                raise EndpointConnectionError(endpoint_url=f"https://{call}")
            if self.throttled.get(call):
                self.throttled[call] -= 1
                raise client_error("ThrottlingException", call)
            if call in self.denied:
                raise client_error(self.denied[call], call)
            return answer(**arguments)

        return answer_or_fail

    def ssm_get_parameter(self, *, Name: str) -> dict[str, Any]:
        if Name not in self.parameters:
            raise ParameterNotFoundError({"Error": {"Code": "ParameterNotFound"}}, "GetParameter")
        return {"Parameter": {"Value": self.parameters[Name]}}

    def ssm_put_parameter(self, *, Name: str, Value: str, Type: str, Overwrite: bool) -> None:
        if len(Value.encode()) > PARAMETER_BYTES or not Overwrite:
            raise client_error("ValidationException", "PutParameter")
        self.parameters[Name] = Value

    def ssm_delete_parameter(self, *, Name: str) -> None:
        if self.parameters.pop(Name, None) is None:
            raise ParameterNotFoundError({"Error": {"Code": "ParameterNotFound"}}, "DeleteParameter")

    def ssm_send_command(self, **command: Any) -> dict[str, Any]:
        assert command["InstanceIds"] == [HEAD_NODE]
        self.commands.append(command)
        return {"Command": {"CommandId": "command-1"}}

    def ssm_get_command_invocation(self, *, CommandId: str, InstanceId: str) -> dict[str, Any]:
        answer = self.invocations.pop(0) if len(self.invocations) > 1 else self.invocations[0]
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def logs_create_log_stream(self, *, logGroupName: str, logStreamName: str) -> None:
        if f"{logGroupName}/{logStreamName}" in self.log:
            raise StreamExistsError({"Error": {"Code": "ResourceAlreadyExistsException"}}, "CreateLogStream")
        self.log[f"{logGroupName}/{logStreamName}"] = []

    def logs_put_log_events(
        self, *, logGroupName: str, logStreamName: str, logEvents: list[dict[str, Any]]
    ) -> None:
        self.log[f"{logGroupName}/{logStreamName}"] += [each["message"] for each in logEvents]

    def s3_list_objects_v2(self, *, Bucket: str, Prefix: str) -> dict[str, Any]:
        return {"KeyCount": sum(each.startswith(f"{Bucket}/{Prefix}") for each in self.objects)}

    def s3_put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        self.objects[f"{Bucket}/{Key}"] = Body.decode()

    def ec2_get_console_output(self, *, InstanceId: str, Latest: bool = False) -> dict[str, Any]:
        if Latest and not self.is_nitro:
            raise client_error("UnsupportedOperation", "GetConsoleOutput")
        text = self.console if Latest == self.is_nitro else "an older text"
        return {"InstanceId": InstanceId} | ({"Output": text} if text else {})

    def cloudformation_describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackName": StackName, "StackStatus": self.parent_status}]}
