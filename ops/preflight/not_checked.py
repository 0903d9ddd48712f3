"""A check that AWS did not answer says so in a line, and hides no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from botocore.exceptions import BotoCoreError, ClientError

from ops.aws_errors import DENIED
from ops.preflight.finding import Finding
from training_cluster.problems import ConfigurationError

_PERMISSION = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z0-9]+)")


def isolated(name: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a check finds; where it breaks off, what it found until then and a warning of why."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except (BotoCoreError, ClientError, ConfigurationError) as error:
        found.append(not_checked(name, error))
    return found


def not_checked(name: str, error: BotoCoreError | ClientError | ConfigurationError) -> Finding:
    """The warning, with the permission that is missing where it is one."""
    if isinstance(error, ClientError) and error.response["Error"].get("Code") in DENIED:
        said = _PERMISSION.search(error.response["Error"].get("Message", ""))
        permission = said[1] if said else error.operation_name
        found = f"not checked: these credentials lack {permission}"
        return Finding(check=name, found=found, verdict="warning", mend=f"ask for the right {permission}")
    what, _, type_ = str(error).partition("\n  type:")
    return Finding(check=name, found=f"not checked: {what}", verdict="warning", mend=type_.strip())
