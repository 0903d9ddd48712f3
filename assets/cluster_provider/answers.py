"""What ParallelCluster's library answers, typed; known without the library itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# AWS's codes for what passes by itself: too many calls, trouble of its own, credentials about to be renewed.
_PASSING = {
    *("BandwidthLimitExceeded", "RequestLimitExceeded", "RequestThrottled", "SlowDown", "Throttled"),
    *("Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException"),
    *("500", "502", "503", "504", "InternalError", "InternalFailure", "InternalServerError"),
    *("InternalServiceError", "InternalServiceException", "ServiceFailure", "ServiceUnavailable"),
    *("Unavailable", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeout"),
}
# AWS's and botocore's words for the same, where a validator made a finding of them and dropped the code.
_PASSING_WORDS = (
    "rate exceeded",
    "request limit exceeded",
    "too many requests",
    "internal error has occurred",
    "endpoint url",
)
# The library's words (pcluster/config/update_policy.py) where a stopped fleet is all that is missing, and
# where it would take QueueUpdateStrategy: DRAIN as well.
_STOP_THE_FLEET = "all compute nodes must be stopped"
_OR_DRAIN = "or queueupdatestrategy must be set"
_OR_TERMINATE = "must be set to terminate"
_LOGIN_NODES = "login nodes"
# The library's validators that try a launch, and AWS's words where a policy denies them its volumes.
LAUNCH_VALIDATORS = ("HeadNodeLaunchTemplateValidator", "ComputeResourceLaunchTemplateValidator")
_VOLUMES_DENIED = ("ec2:runinstances on resource: arn:", ":volume/", "explicit deny")
# The library's words (pcluster/models/cluster.py) where EC2 answered that there is no head node.
_NO_HEAD_NODE = "unable to retrieve head node information"


def passes(code: str) -> bool:
    """Whether an error of AWS with this code passes by itself."""
    return code in _PASSING


def code_of(error: BaseException) -> str | None:
    """Find AWS's own code in an error's chain of causes; None when AWS said nothing."""
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
    """Throttled, or AWS answered with an error of its own: the same call may pass later."""


class RefusedError(Exception):
    """The library refused. `content` is its answer: message, validation errors, change set."""

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__(str(content.get("message", content)))
        self.content = content

    @property
    def may_pass_later(self) -> bool:
        """Whether nothing but calls that AWS did not answer made the config invalid."""
        errors = [str(each.get("message")).lower() for each in self._errors]
        return bool(errors) and all(any(word in each for word in _PASSING_WORDS) for each in errors)

    @property
    def denied_volumes(self) -> tuple[str, ...]:
        """AWS's denials of volumes without tags, as warnings; empty where anything else is wrong, too.

        The library's dry runs of a launch tag the instance alone; launches of a cluster tag volumes as well.
        """
        errors = [(str(each.get("type")), str(each.get("message"))) for each in self._errors]
        if not all(
            validator in LAUNCH_VALIDATORS and all(words in said.lower() for words in _VOLUMES_DENIED)
            for validator, said in errors
        ):
            return ()
        # The rest of the message is the decision as a long token.
        return tuple(
            f"WARNING {validator}: not checked: its dry run has no tags for volumes, which launches have: "
            + said.partition(" Encoded authorization")[0]
            for validator, said in errors
        )

    @property
    def wants_stopped_fleet(self) -> bool:
        """Whether every change that was refused could be made with the compute fleet stopped."""
        return bool(self._refusals) and all(
            _STOP_THE_FLEET in each and _LOGIN_NODES not in each for each in self._refusals
        )

    @property
    def may_drain(self) -> bool:
        """Whether every change that was refused could be made with QueueUpdateStrategy: DRAIN."""
        drains = [_OR_DRAIN in each and _OR_TERMINATE not in each for each in self._refusals]
        return bool(drains) and all(drains)

    @property
    def is_impossible(self) -> bool:
        """Whether something was to change that never can in a cluster's life."""
        waits = self.wants_stopped_fleet or any(_LOGIN_NODES in each for each in self._refusals)
        return bool(self._refusals) and not waits

    @property
    def lacks_head_node(self) -> bool:
        """True where no instance is left that is the cluster's head node."""
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


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """What `pcluster describe-cluster` says, as far as the provider needs it."""

    status: str
    """clusterStatus: CREATE_COMPLETE, UPDATE_FAILED ..."""
    tags: dict[str, str]
    failures: tuple[dict[str, Any], ...]
    """failureCode and failureReason; only at CREATE_FAILED."""
    head_node_instance_id: str | None
    stack_status: str
    """Of the cluster's stack, in CloudFormation's words."""
    created: str
    """When its stack was created: tells a cluster from a later one of the same name."""

    changed: str
    """When its stack was last created or updated."""

    @property
    def is_changing(self) -> bool:
        """Whether its stack is at work."""
        return self.status.endswith("_IN_PROGRESS")


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """What the library would do."""

    validation: tuple[str, ...]
    """Warnings and notes of its validators."""
    changes: tuple[str, ...]
    """Of an update: `parameter: old -> new`."""
