"""The head node's Prometheus on this machine."""

import shlex
from contextlib import AbstractContextManager

from ops.account.region_and_profile import with_account
from ops.account.session import ClientOf
from ops.connect import forward_command, found
from ops.dashboards.forward import forwarded, free_port
from ops.dashboards.prometheus import PORT


def session(cluster: str, client: ClientOf, *, port: int | None = None) -> AbstractContextManager[str]:
    """Forward the port of the head node's Prometheus, to a free one by default.

    Raises:
        OpsError: no such cluster, or a program is missing here; and botocore's errors.
    """
    port = port or free_port()
    command = forward_command(cluster, client, port=PORT, local_port=port)
    return forwarded(found(shlex.split(with_account(shlex.join(command)))), port)
