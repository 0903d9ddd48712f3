"""AWS::Logs::LogGroup of a function, which CloudFormation refuses if a first call has created it already.

Two kinds of groups are not checked. ParallelCluster names a cluster's group by the minute and keeps it, and
here a cluster may be created twice in one minute. It also creates the groups of its own functions without a
dependency. On AWS these exist long before the roles with which the functions are called.
"""

import json

from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Properties

_TYPE = "AWS::Logs::LogGroup"
_OF_FUNCTIONS, _OF_PARALLELCLUSTER = "/aws/lambda/", "/aws/lambda/pcluster-"


def install() -> None:
    """Refuse to create a function's log group that exists, which ministack replaces."""
    handlers.before_create(_TYPE, _check)


def _check(properties: Properties) -> None:
    name = properties.get("LogGroupName") or ""
    checked = name.startswith(_OF_FUNCTIONS) and not name.startswith(_OF_PARALLELCLUSTER)
    if checked and _exists(name):
        identifier = json.dumps({"/properties/LogGroupName": name})
        raise ValueError(f"Resource of type '{_TYPE}' with identifier '{identifier}' already exists.")


def _exists(name: str) -> bool:
    found = client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return name in [each["logGroupName"] for each in found]
