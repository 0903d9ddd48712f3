"""The provider's real handlers, with a record of their calls of AWS; runs in .venv-pcluster.

Called by: rehearsal/recording/provider.py, with the environment of a client of the local AWS and the
provider's folder on PYTHONPATH. It reads one JSON object per line: `handler`, `event` and `pretend`. It
writes one: `answer` or `error`; `calls`, each `origin service operation parameter,parameter`, where
the origin is `library` or the provider's own file; `types`, the properties, at any depth, of each
resource type in the uploaded templates.

`pretend` is `no-stack` (CreateStack is not sent and fails, so that the library cleans up) or `failed`
(the cluster's stack is reported as if its creation had failed).
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

import yaml
from botocore.client import BaseClient
from botocore.exceptions import ClientError

NOT_SENT = "recording: the stack is not created"

# Attributes of a resource beside its properties that need actions of their own.
_ATTRIBUTES = {"UpdatePolicy"}

_CLIENT: Any = BaseClient

_Calls = set[str]
_Types = dict[str, set[str]]
_Yaml = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the templates have thousands of lines


class Recorder:
    """A recorder between botocore's clients and AWS."""

    def __init__(self) -> None:
        self._send = _CLIENT._make_api_call
        self.pretend = ""
        self.calls: _Calls = set()
        self.types: _Types = {}

    def install(self) -> None:
        """Route every call of every client through this recorder."""
        recorder = self

        def make_api_call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            return recorder.call(client, operation, parameters)

        _CLIENT._make_api_call = make_api_call

    def call(self, client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        """Record one call, then send it, or pretend an answer."""
        names = ",".join(sorted(parameters)) or "-"
        service = client.meta.service_model.signing_name
        self.calls.add(f"{_origin()} {service} {operation} {names}")
        if operation == "PutObject":
            self._take_template(parameters)
        if operation == "CreateStack" and self.pretend == "no-stack":
            raise ClientError({"Error": {"Code": "Recording", "Message": NOT_SENT}}, operation)
        answer = self._send(client, operation, parameters)
        if operation == "DescribeStacks" and self.pretend == "failed":
            for stack in answer["Stacks"]:
                stack["StackStatus"] = "CREATE_FAILED"
        return answer

    def _take_template(self, parameters: dict[str, Any]) -> None:
        """Record the types in the cluster's template, and in those of its nested stacks, which are assets."""
        if "/templates/" not in parameters["Key"] and "/assets/" not in parameters["Key"]:
            return
        template = yaml.load(parameters["Body"], Loader=_Yaml)  # noqa: S506  # it is a safe one
        for resource in template.get("Resources", {}).values():
            set_here = {*_keys(resource.get("Properties")), *(resource.keys() & _ATTRIBUTES)}
            self.types.setdefault(resource["Type"], set()).update(set_here)


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys at any depth."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(each)


def _origin() -> str:
    """Return the caller: the library, if it is anywhere in the stack, otherwise a file of the provider."""
    frame: FrameType | None = sys._getframe(1)
    provider = ""
    while frame:
        if frame.f_globals.get("__name__", "").startswith("pcluster."):
            return "library"
        if frame.f_code.co_filename.startswith(_PROVIDER) and not provider:
            provider = frame.f_code.co_filename.removeprefix(_PROVIDER)
        frame = frame.f_back
    return provider or "library"  # its uploads have threads of their own


# A module on PYTHONPATH that is in no package.
_HANDLER: Any = importlib.import_module("handler")
_PROVIDER = _HANDLER.__file__.removesuffix("handler.py")


def main() -> None:
    """Run one handler per line, until standard input ends."""
    recorder = Recorder()
    recorder.install()
    for line in sys.stdin:
        request = json.loads(line)
        recorder.pretend, recorder.calls, recorder.types = request["pretend"], set(), {}
        try:
            said: dict[str, Any] = {"answer": getattr(_HANDLER, request["handler"])(request["event"], None)}
        except Exception as error:
            traceback.print_exc()
            said = {"error": str(error)}
        types = {name: sorted(properties) for name, properties in recorder.types.items()}
        print(json.dumps(said | {"calls": sorted(recorder.calls), "types": types}), file=_ANSWERS, flush=True)


if __name__ == "__main__":
    # The handlers' output goes to their log.
    _ANSWERS, sys.stdout = sys.stdout, sys.stderr
    main()
