"""Errors of AWS and of ParallelCluster's library, typed, without an import of the library itself."""

from __future__ import annotations

from typing import Any

# AWS's codes of errors that pass by themselves: throttling, internal errors, credentials about to be renewed.
_TRANSIENT_CODES = {
    *("BandwidthLimitExceeded", "RequestLimitExceeded", "RequestThrottled", "SlowDown", "Throttled"),
    *("Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException"),
    *("500", "502", "503", "504", "InternalError", "InternalFailure", "InternalServerError"),
    *("InternalServiceError", "InternalServiceException", "ServiceFailure", "ServiceUnavailable"),
    *("Unavailable", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeout"),
}
# Messages of the same errors by AWS and botocore: a validator's finding has the message without the code.
_TRANSIENT_MESSAGES = (
    "rate exceeded",
    "request limit exceeded",
    "too many requests",
    "internal error has occurred",
    "endpoint url",
)
# Parts of the library's messages (pcluster/config/update_policy.py): the update requires a stopped fleet, or
# would also be possible with QueueUpdateStrategy: DRAIN.
_STOP_THE_FLEET = "all compute nodes must be stopped"
_OR_DRAIN = "or queueupdatestrategy must be set"
_OR_TERMINATE = "must be set to terminate"
_LOGIN_NODES = "login nodes"
# The library's validators that try a launch, and parts of AWS's message when a policy denies the volumes.
LAUNCH_VALIDATORS = ("HeadNodeLaunchTemplateValidator", "ComputeResourceLaunchTemplateValidator")
_VOLUMES_DENIED = ("ec2:runinstances on resource: arn:", ":volume/", "explicit deny")
# Part of the library's message (pcluster/models/cluster.py) when EC2 has no instance of the head node.
_NO_HEAD_NODE = "unable to retrieve head node information"


def is_transient(code: str) -> bool:
    """Return True for a code of AWS whose error passes by itself."""
    return code in _TRANSIENT_CODES


def code_of(error: BaseException) -> str | None:
    """Find AWS's error code in an error's chain of causes; None when AWS reported none."""
    cause: BaseException | None = error
    while cause:
        response = getattr(cause, "response", None) or {}
        code = getattr(cause, "error_code", None) or response.get("Error", {}).get("Code")
        if code:
            return str(code)
        cause = cause.__cause__ or cause.__context__
    return None


class ClusterNotFoundError(Exception):
    """No cluster of that name exists in the region."""


class TransientError(Exception):
    """AWS throttled a call or failed itself: the same call may pass later."""


class RefusedError(Exception):
    """The library's refusal; `content` is its answer: message, validation errors, change set."""

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(str(content.get("message", content)))
        self.content = content

    @property
    def is_transient(self) -> bool:
        """True when only calls that AWS did not answer made the config invalid."""
        errors = [str(each.get("message")).lower() for each in self._errors]
        return bool(errors) and all(any(part in each for part in _TRANSIENT_MESSAGES) for each in errors)

    @property
    def denied_volumes(self) -> tuple[str, ...]:
        """AWS's denials of volumes without tags, as warnings; empty when the config has any other error.

        The library's dry run of a launch tags only the instance; a cluster's launches tag its volumes too.
        """
        errors = [(str(each.get("type")), str(each.get("message"))) for each in self._errors]
        if not all(
            validator in LAUNCH_VALIDATORS and all(part in message.lower() for part in _VOLUMES_DENIED)
            for validator, message in errors
        ):
            return ()
        # The rest of the message is a long encoded token.
        return tuple(
            f"WARNING {validator}: not checked: its dry run has no tags for volumes, which launches have: "
            + message.partition(" Encoded authorization")[0]
            for validator, message in errors
        )

    @property
    def requires_stopped_fleet(self) -> bool:
        """True when a stopped compute fleet would allow every refused change."""
        return bool(self._refusals) and all(
            _STOP_THE_FLEET in each and _LOGIN_NODES not in each for each in self._refusals
        )

    @property
    def may_drain(self) -> bool:
        """True when QueueUpdateStrategy: DRAIN would allow every refused change."""
        drains = [_OR_DRAIN in each and _OR_TERMINATE not in each for each in self._refusals]
        return bool(drains) and all(drains)

    @property
    def is_impossible(self) -> bool:
        """True when a refused change is not possible during a cluster's life."""
        waits = self.requires_stopped_fleet or any(_LOGIN_NODES in each for each in self._refusals)
        return bool(self._refusals) and not waits

    @property
    def lacks_head_node(self) -> bool:
        """True when the cluster's head node no longer exists."""
        return _NO_HEAD_NODE in str(self).lower()

    @property
    def _errors(self) -> list[dict[str, Any]]:
        findings = self.content.get("configuration_validation_errors") or []
        return [each for each in findings if each.get("level") == "ERROR"]

    @property
    def _refusals(self) -> list[str]:
        return [
            str(each.get("message")).lower() for each in self.content.get("update_validation_errors") or []
        ]
