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
    "error",
    [
        AwsError("slow down", "Throttling"),
        because(ApiError(500, message="failed"), AwsError("slow down", "RequestLimitExceeded")),
        because(ApiError(400, message="Invalid cluster configuration"), client_error(THROTTLED)),
        because(ApiError(500, message="failed"), client_error("ExpiredToken")),
        because(ApiError(500, message="failed"), client_error("503")),
        AwsError('Could not connect to the endpoint URL: "https://ec2"'),
        EndpointConnectionError(endpoint_url="https://ec2"),
        because(ApiError(500, message="failed"), NoCredentialsError()),
        ApiError(500, message="Failed: could not retrieve compute fleet status from the table."),
    ],
    ids=str,
)
def test_what_passes_by_itself_is_transient(
    provider: Provider, library: Any, pcluster: Pcluster, error: Exception
) -> None:
    pcluster.answers = [error]
    with pytest.raises(provider.errors.TransientError):
        library.delete("c")


def test_an_unanswered_validator_makes_no_config_invalid(
    provider: Provider, library: Any, pcluster: Pcluster
) -> None:
    pcluster.answers = [_invalid(NO_ANSWER, ("ERROR", "Rate exceeded"), ("WARNING", "old"))]
    with pytest.raises(provider.errors.TransientError):
        library.create("c", {})
    pcluster.answers = [_invalid(NO_ANSWER, ("ERROR", "no such subnet"))]
    with pytest.raises(provider.errors.RefusedError):
        library.create("c", {})
    pcluster.answers = [_invalid(("WARNING", "Rate exceeded"))]
    with pytest.raises(provider.errors.RefusedError):
        library.create("c", {})


@pytest.mark.parametrize(
    "error",
    [
        ApiError(400, message="Invalid"),
        because(ApiError(500, message="failed"), client_error(DENIED)),
        AwsError("you may not", DENIED),
        TypeError("endpoint URL"),
    ],
    ids=str,
)
def test_what_does_not_pass_is_refused(
    provider: Provider, library: Any, pcluster: Pcluster, error: Exception
) -> None:
    pcluster.answers = [error]
    with pytest.raises(provider.errors.RefusedError):
        library.delete("c")


def test_of_several_codes_of_aws_the_outermost_counts(
    provider: Provider, library: Any, pcluster: Pcluster
) -> None:
    denied = because(AwsError("no", DENIED), client_error(THROTTLED))
    pcluster.answers = [because(ApiError(500, message="failed"), denied)]
    with pytest.raises(provider.errors.RefusedError):
        library.delete("c")


def test_an_unexpected_fatal_exception_is_named(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    error = OSError("no space left")
    error.content = {"message": "Unexpected fatal exception. Please look at the logs"}  # type: ignore[attr-defined]
    pcluster.answers = [error]
    with pytest.raises(provider.errors.RefusedError, match="OSError: no space left"):
        library.delete("c")


def test_each_error_of_a_missing_cluster_counts(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [
        ApiError(404, message="gone"),
        AwsError("Stack with id c does not exist", "Validation"),
    ]
    for _ in range(2):
        with pytest.raises(provider.errors.ClusterNotFoundError):
            library.delete("c")
