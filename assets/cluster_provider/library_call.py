"""A call of ParallelCluster's library: the environment, three types of errors, and cleared caches."""

from __future__ import annotations

import inspect
import os
import tempfile
from typing import Any

from errors import ClusterNotFoundError, RefusedError, TransientError, code_of, is_transient
from retry import retry

# The library logs and caches under HOME, and only the temporary folder is writable in Lambda. Its
# CDK v1 prints a banner for every Node newer than its own tests.
_home = os.path.join(tempfile.gettempdir(), "pcluster-home")  # noqa: PTH118
os.makedirs(_home, exist_ok=True)  # noqa: PTH103
os.environ.update(HOME=_home, XDG_CACHE_HOME=_home, JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION="1")

import pcluster.lib as pc  # noqa: E402
from botocore.exceptions import BotoCoreError  # noqa: E402
from pcluster.api.errors import ParallelClusterApiException, exception_message  # noqa: E402
from pcluster.aws.aws_api import AWSApi  # noqa: E402
from pcluster.aws.common import AWSClientError, Cache  # noqa: E402
from pcluster.validators.s3_validators import UrlValidator  # noqa: E402

_NOT_FOUND, _DRY_RUN_PASSED = 404, 412
# Part of botocore's messages for: no connection, a connection that broke, no answer in time.
_NO_ANSWER = "endpoint URL"
# Parts of the library's messages when two requests for a fleet collide, and when its table does not answer.
_COLLISIONS = ("please retry", "could not retrieve compute fleet status")
# The validator's results for each URL of the last ten seconds, failures too: Cache.clear_all leaves this one.
_URLS: dict[Any, Any] = inspect.getclosurevars(UrlValidator._validate_async).nonlocals["_cache"]


def clear_caches() -> None:
    """Clear the library's caches: a warm Lambda must not repeat an answer of its last invocation."""
    Cache.clear_all()
    AWSApi.reset()
    _URLS.clear()


def content_of(error: BaseException) -> dict[str, Any]:
    """Return the library's answer that an error carries: message, validation errors, change set."""
    content = exception_message(error)
    content = content.to_dict() if hasattr(content, "to_dict") else dict(content)
    if "Unexpected fatal exception" in str(content.get("message")):
        # The library's message for TypeError, OSError and ParameterException names none of them.
        content["message"] = f"{type(error).__name__}: {error}"
    return content


def _is_unanswered(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, BotoCoreError) or (
            isinstance(cause, AWSClientError) and _NO_ANSWER in str(cause)
        ):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def is_aws_failure(error: BaseException) -> bool:
    """Return True if AWS throttled a call, failed itself or gave no answer.

    The library answers 500 for almost everything, and calls a config invalid when a validator's call was
    throttled: AWS's own error is in the chain of causes.
    """
    code = code_of(error)
    return is_transient(code) if code else _is_unanswered(error)


def call(operation: str, **arguments: Any) -> dict[str, Any]:
    """Call one operation of the library. Raises ClusterNotFoundError, TransientError, RefusedError."""
    clear_caches()
    try:
        return dict(getattr(pc, operation)(**arguments))
    except Exception as error:
        code, content = getattr(error, "code", None), content_of(error)
        if code == _DRY_RUN_PASSED:
            return content
        message = str(content.get("message"))
        if code == _NOT_FOUND:
            raise ClusterNotFoundError(message) from error
        if is_aws_failure(error) or any(part in message.lower() for part in _COLLISIONS):
            raise TransientError(message) from error
        if not isinstance(error, ParallelClusterApiException) and "does not exist" in message:
            raise ClusterNotFoundError(message) from error
        refused = RefusedError(content)
        if refused.is_transient:
            raise TransientError(str(content["configuration_validation_errors"])) from error
        raise refused from error


def call_with_retries(operation: str, **arguments: Any) -> dict[str, Any]:
    """Call one operation of the library, again for half a minute. Raises as `call` does."""
    return retry(operation, lambda: call(operation, **arguments))
