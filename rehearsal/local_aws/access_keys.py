"""Access to a local AWS: all users of the machine can reach its port, so each start has its own access key.

Every signed request contains the id of an access key, and requests are encrypted. The local AWS checks this
id, which nobody can guess, and not the signature. Sessions have their own keys; rights/sessions.py makes
those of functions.
"""

import secrets
import string
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.moto_services import Answer

# Addresses at which functions and nodes answer CloudFormation; their token replaces AWS's pre-signed URL.
_ANSWERS = ("/_ministack/cfn-response/", "/_ministack/cfn-signal/")
_UNKNOWN = ("UnrecognizedClientException", "The security token included in the request is invalid.")
_MISSING = ("MissingAuthenticationToken", "Request is missing Authentication Token")


def new_access_key() -> str:
    """Generate an access key id of AWS's form that nobody can guess."""
    return "AKIA" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(16))


class AccessKeys:
    """The access keys that a local AWS accepts: its own, and the keys of its STS's sessions.

    Args:
        own: access key of this start.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._key_of = hooks.find(ministack_hooks.REQUEST_KEY)
        self._sessions: Mapping[str, Any] = hooks.find(ministack_hooks.SESSIONS)
        self._refuse = hooks.find(ministack_hooks.REFUSAL)

    def refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str], service: str) -> Answer | None:
        """Check the access key of one request.

        Returns:
            None if the request is allowed; otherwise AWS's own error in the service's protocol.
        """
        if scope["method"] == "PUT" and scope["path"].startswith(_ANSWERS):
            return None
        key = self._key_of(headers, parse_qs(scope.get("query_string", b"").decode("latin-1")))
        if key == self._own or key in self._sessions:
            return None
        code, message = _UNKNOWN if key else _MISSING
        status, found, body = self._refuse(
            service, "", "", str(uuid.uuid4()), error_code=code, message=message, headers=dict(headers)
        )
        return status, list(found.items()), body
