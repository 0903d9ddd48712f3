"""Reports checks that AWS did not answer, so that they hide no other."""

import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.aws_errors import DENIED
from ops.preflight.finding import Finding
from training_cluster.problems import ConfigurationError

_PERMISSION = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z0-9]+)")


def run_isolated(name: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; return its findings up to an error, and a warning with the reason of the error."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # any error is reported, and the other checks continue
        found.append(not_checked(name, error))
    return found


def not_checked(name: str, error: Exception) -> Finding:
    """Return the warning, with the name of a missing permission."""
    if isinstance(error, ClientError) and error.response["Error"].get("Code") in DENIED:
        named = _PERMISSION.search(error.response["Error"].get("Message", ""))
        permission = named[1] if named else error.operation_name
        found = f"not checked: these credentials lack {permission}"
        return Finding(
            check=name, found=found, verdict="warning", mend=f"ask for the permission {permission}"
        )
    if not isinstance(error, BotoCoreError | ClientError | ConfigurationError):
        return _not_understood(name, error)
    said, _, type_ = str(error).partition("\n  type:")
    what = " ".join(said.split())
    return Finding(check=name, found=f"not checked: {what}", verdict="warning", mend=type_.strip())


def _not_understood(name: str, error: Exception) -> Finding:
    """Return the warning for an answer without a documented part, or for a bug of trainctl."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    said = " ".join(f"{type(error).__name__} {error}".split())
    return Finding(
        check=name,
        found=f"not checked: an answer of AWS cannot be parsed: {said} ({where})",
        verdict="warning",
        mend="the same command again; if the error remains, report this line as a bug of trainctl",
    )
