"""Lambda: Python functions run with their layers as on AWS, on this machine's .venv-pcluster.

AWS publishes ParallelCluster as a layer for Lambda's own Python. Here the layer of that name is empty, and
the interpreter of .venv-pcluster has the same library. A custom layer (`-c layer=build`) is built for
Lambda's Python and left out for the same reason.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.ministack_client import client
from training_cluster.paths import PCLUSTER_PYTHON

_FUNCTION = "AWS::Lambda::Function"
# ParallelCluster's own functions wait up to 40 s for instances to end; nothing here takes that long.
SLEEP_SCALE = 0.005

# Runs in the worker before the function's code. On AWS a layer's files are under /opt (CDK's
# BucketDeployment calls /opt/awscli/aws); here each layer is in a folder of its own, and unpacking has
# cleared the executable bits.
_PRELUDE = """
import os as _os, subprocess as _subprocess, sys as _sys, time as _time
_sleep = _time.sleep
_time.sleep = lambda seconds: _sleep(seconds * {sleep_scale})
_layers = _os.environ.get("_LAMBDA_LAYERS_DIRS", "").split(_os.pathsep)
_layers = [each for each in _layers if not _os.path.isdir(_os.path.join(each, "python", "pcluster"))]
_os.environ["_LAMBDA_LAYERS_DIRS"] = _os.pathsep.join(_layers)
_popen_init = _subprocess.Popen.__init__
def _in_layers(self, args, *rest, **options):
    program = args[0] if isinstance(args, (list, tuple)) else ""
    if str(program).startswith("/opt/"):
        for layer in _os.environ.get("_LAMBDA_LAYERS_DIRS", "").split(_os.pathsep):
            found = _os.path.join(layer, program[len("/opt/"):])
            if _os.path.exists(found):
                args = [_sys.executable, found, *args[1:]]
                break
    _popen_init(self, args, *rest, **options)
_subprocess.Popen.__init__ = _in_layers
""".replace("{sleep_scale}", str(SLEEP_SCALE))


# CDK's BucketDeployment sets this to Amazon Linux's root certificates. This machine lacks that file,
# and it would not contain this server's certificate.
_AMAZON_LINUX_ROOTS = "AWS_CA_BUNDLE"


def install() -> None:
    """Run Python functions with PCLUSTER_PYTHON, map /opt to their layers, and trust our certificate."""
    _correct_functions_of_stacks()

    def make(theirs: Callable[[str], tuple[str, str]]) -> Callable[[str], tuple[str, str]]:
        def detect(runtime: str) -> tuple[str, str]:
            binary, worker = theirs(runtime)
            if runtime.startswith("python"):
                return str(PCLUSTER_PYTHON), _PRELUDE + worker
            return binary, worker

        return detect

    hooks.replace("LAMBDA_BINARY", make)


def _look_for_code(code: dict[str, Any]) -> None:
    if "S3Key" not in code:
        return
    version = {"VersionId": code["S3ObjectVersion"]} if code.get("S3ObjectVersion") else {}
    try:
        client("s3").head_object(Bucket=code["S3Bucket"], Key=code["S3Key"], **version)
    except ClientError:
        raise ValueError(
            "Error occurred while GetObject. S3 Error Code: NoSuchKey. S3 Error Message: The specified key "
            f"does not exist: {code['S3Key']}"
        ) from None


def _correct_functions_of_stacks() -> None:
    """Let functions of stacks require their code, trust our certificate, and leave no process behind."""
    function = original(_FUNCTION)

    def without_roots(properties: dict[str, Any]) -> dict[str, Any]:
        environment = properties.get("Environment") or {}
        variables = {k: v for k, v in environment.get("Variables", {}).items() if k != _AMAZON_LINUX_ROOTS}
        return (
            {**properties, "Environment": {**environment, "Variables": variables}}
            if environment
            else properties
        )

    def create(logical_id: str, properties: dict[str, Any], *rest: Any) -> Any:
        _look_for_code(properties.get("Code") or {})
        return function["create"](logical_id, without_roots(properties), *rest)

    def update(physical_id: str, old: dict[str, Any], new: dict[str, Any], *rest: Any) -> Any:
        return function["update"](physical_id, without_roots(old), without_roots(new), *rest)

    def delete(physical_id: str, _: dict[str, Any]) -> None:
        with contextlib.suppress(client("lambda").exceptions.ResourceNotFoundException):
            client("lambda").delete_function(FunctionName=physical_id)  # this ends its process as well

    wrap(_FUNCTION, create=create, update=update, delete=delete)
