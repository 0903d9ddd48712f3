"""Runs in .venv-pcluster: the provider's real handlers, and what they ask of AWS.

Called by: rehearsal/recording/provider.py, with the environment of a client of the local AWS and the
provider's folder on PYTHONPATH. One JSON object a line comes in: `handler`, `event` and `pretend`.
One goes out: `answer` or `error`; `calls`, each `origin service operation parameter,parameter`, where
the origin is `library` or the provider's own file; `types`, the properties, at any depth, of each
resource type in the templates that were uploaded.

`pretend` is `no-stack` (CreateStack is not sent and fails, so that the library cleans up behind
itself) or `failed` (the cluster's stack looks as if its creation had failed).
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

# Of a resource, beside its properties, what takes actions of its own.
_ATTRIBUTES = {"UpdatePolicy"}

_CLIENT: Any = BaseClient

_Calls = set[str]
_Types = dict[str, set[str]]
_Yaml = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the templates have thousands of lines


class Recorder:
    """Stands between botocore's clients and AWS."""

    def __init__(self) -> None:
        self._send = _CLIENT._make_api_call
        self.pretend = ""
        self.calls: _Calls = set()
        self.types: _Types = {}

    def install(self) -> None:
        """Have every call of every client come by."""
        recorder = self

        def make_api_call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            return recorder.call(client, operation, parameters)

        _CLIENT._make_api_call = make_api_call

    def call(self, client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        """Write one call down, then send it, or pretend."""
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
        """The cluster's own template, and those of its nested stacks, which are assets."""
        if "/templates/" not in parameters["Key"] and "/assets/" not in parameters["Key"]:
            return
        template = yaml.load(parameters["Body"], Loader=_Yaml)  # noqa: S506  # it is a safe one
        for resource in template.get("Resources", {}).values():
            set_here = {*_keys(resource.get("Properties")), *(resource.keys() & _ATTRIBUTES)}
            self.types.setdefault(resource["Type"], set()).update(set_here)


def _keys(value: Any) -> Iterator[str]:
    """The keys at any depth."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(each)


def _origin() -> str:
    """Who calls: the library, wherever it is in the stack, or else a file of the provider."""
    frame: FrameType | None = sys._getframe(1)
    provider = ""
    while frame:
        if frame.f_globals.get("__name__", "").startswith("pcluster."):
            return "library"
        if frame.f_code.co_filename.startswith(_PROVIDER) and not provider:
            provider = frame.f_code.co_filename.removeprefix(_PROVIDER)
        frame = frame.f_back
    return provider or "library"  # its uploads have threads of their own


# On PYTHONPATH, and no package.
_HANDLER: Any = importlib.import_module("handler")
_PROVIDER = _HANDLER.__file__.removesuffix("handler.py")


def main() -> None:
    """Run one handler a line, until there are no more."""
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
    # What the handlers print is for their log.
    _ANSWERS, sys.stdout = sys.stdout, sys.stderr
    main()
