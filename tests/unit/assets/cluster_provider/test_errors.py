"""Errors of the library and of AWS: transient, refused, or not found."""

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from tests.unit.assets.cluster_provider.fakes.aws import client_error
from tests.unit.assets.cluster_provider.fakes.library_module import ApiError, AwsError, Pcluster, because
from tests.unit.assets.cluster_provider.fakes.provider import Provider

THROTTLED, DENIED = "ThrottlingException", "AccessDenied"


def _invalid(*findings: tuple[str, str]) -> ApiError:
    errors = [{"level": level, "type": "V", "message": message} for level, message in findings]
    return ApiError(400, message="Invalid cluster configuration.", configuration_validation_errors=errors)


NO_ANSWER = ("ERROR", 'Read timeout on endpoint URL: "https://fsx"')


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("Transient", AwsError("slow down", "Throttling")),
        ("Transient", because(ApiError(500, message="failed"), AwsError("slow", "RequestLimitExceeded"))),
        (
            "Transient",
            because(ApiError(400, message="Invalid cluster configuration"), client_error(THROTTLED)),
        ),
        ("Transient", because(ApiError(500, message="failed"), client_error("ExpiredToken"))),
        ("Transient", because(ApiError(500, message="failed"), client_error("503"))),
        ("Transient", AwsError('Could not connect to the endpoint URL: "https://ec2"')),
        ("Transient", EndpointConnectionError(endpoint_url="https://ec2")),
        ("Transient", because(ApiError(500, message="failed"), NoCredentialsError())),
        (
            "Transient",
            ApiError(500, message="Failed: could not retrieve compute fleet status from the table."),
        ),
        # A validator without an answer makes no config invalid.
        ("Transient", _invalid(NO_ANSWER, ("ERROR", "Rate exceeded"), ("WARNING", "old"))),
        ("Refused", _invalid(NO_ANSWER, ("ERROR", "no such subnet"))),
        ("Refused", _invalid(("WARNING", "Rate exceeded"))),
        ("Refused", ApiError(400, message="Invalid")),
        ("Refused", because(ApiError(500, message="failed"), client_error(DENIED))),
        ("Refused", AwsError("you may not", DENIED)),
        ("Refused", TypeError("endpoint URL")),
        # Of several codes of AWS, the outermost counts.
        (
            "Refused",
            because(ApiError(500, message="m"), because(AwsError("no", DENIED), client_error(THROTTLED))),
        ),
        ("ClusterNotFound", ApiError(404, message="gone")),
        ("ClusterNotFound", AwsError("Stack with id c does not exist", "Validation")),
    ],
    ids=str,
)
def test_each_error_has_its_kind(
    provider: Provider, library: Any, pcluster: Pcluster, kind: str, error: Exception
) -> None:
    pcluster.answers = [error]
    with pytest.raises(getattr(provider.errors, f"{kind}Error")):
        library.delete("c")


def test_an_unexpected_fatal_exception_is_named(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    error = OSError("no space left")
    error.content = {"message": "Unexpected fatal exception. Please look at the logs"}  # type: ignore[attr-defined]
    pcluster.answers = [error]
    with pytest.raises(provider.errors.RefusedError, match="OSError: no space left"):
        library.delete("c")
