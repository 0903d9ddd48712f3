"""A session of its role for each Lambda function, as on AWS."""

import secrets
import threading
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.address import ACCOUNT
from rehearsal.local_aws.emulators import hooks

_LONGEST_NAME = 64
_lock = threading.Lock()
_roles: dict[str, str] = {}
_credentials: dict[tuple[str, str], dict[str, str]] = {}


def install() -> None:
    """Let each function sign with the session of its role; nobody can guess its access key."""
    hooks.replace("FUNCTION_CREDENTIALS", lambda _original: function_credentials)


def role_of(access_key: str) -> str | None:
    """Return the name of the role of a function's session; None if no function has this access key."""
    return _roles.get(access_key)


def function_credentials(config: dict[str, Any]) -> dict[str, str]:
    """Return the credentials of one function, by its configuration."""
    name, role = config.get("FunctionName", "function"), config.get("Role", "")
    with _lock:
        if (name, role) not in _credentials:
            _credentials[name, role] = _new_session(name, role.rpartition("/")[2])
        return _credentials[name, role]


def _new_session(function: str, role: str) -> dict[str, str]:
    register: Callable[[str, dict[str, str]], None] = hooks.find("REGISTER_SESSION")
    key, secret, token = f"ASIA{secrets.token_hex(8).upper()}", secrets.token_hex(20), secrets.token_hex(32)
    session = function[:_LONGEST_NAME]
    register(
        key,
        {
            "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{session}",
            "UserId": f"{role}:{session}",
            "SecretAccessKey": secret,
            "SessionToken": token,
        },
    )
    _roles[key] = role
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}
