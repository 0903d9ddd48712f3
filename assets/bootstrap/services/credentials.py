"""Gives each process of a user on this node credentials of AWS of that user's own, over loopback.

AWS's tools ask at the address of AWS_CONTAINER_CREDENTIALS_FULL_URI, which task-prolog.sh sets for jobs.
The kernel's table of connections says which user asks. The credentials are a session of the cluster's role
of users, with the user's name as its tag `user`: the role's policy confines the session to the folder of that
name (constructs/training_cluster/cluster/users_role.py), and CloudTrail shows it.

Used by: node_service.py, as root, on compute nodes. Python 3.9 and later, standard library and `aws`.
"""

from __future__ import annotations

import http.server
import json
import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from typing import Any

# Below 1024, so that no user takes it while this service is down; below 600, where the kernel's NFS client
# and bindresvport() begin. IANA has assigned it to nobody.
ADDRESS = ("127.0.0.1", 330)
SESSION_S, EARLY_S, TIMEOUT_S = 3600, 900, 20
"""Seconds of a session (the most for a role that assumes another), of its last part, and of `aws`."""
FIRST_UID, NOBODY = 1000, 65534
"""Uids below are the system's, which may ask the metadata service (63-protect-file-systems.sh)."""
MOST_THREADS = 256
_ESTABLISHED = "01"
_MAPPED = "0" * 16 + "FFFF0000"


def caller(connection: socket.socket) -> int | None:
    """Return the uid whose process holds the other end of a connection.

    A socket that its process has closed has the uid 0 in the table, so only an established connection counts.
    """
    client, server = (
        f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
        for host, port in (connection.getpeername(), connection.getsockname())
    )
    for table, before in (("tcp", ""), ("tcp6", _MAPPED)):  # Java connects to IPv4 by sockets of IPv6
        with open(f"/proc/net/{table}", encoding="ascii") as lines:  # noqa: PTH123 - no file of a disk
            for row in map(str.split, lines):
                if row[1:4] == [before + client, before + server, _ESTABLISHED]:
                    return int(row[7])
    return None


def name_of(uid: int | None) -> str | None:
    """Return the name of an ordinary user; None for another uid, or for one whose name belongs to another."""
    if uid is None or uid < FIRST_UID or uid == NOBODY:
        return None
    try:
        name = pwd.getpwuid(uid).pw_name
        return name if pwd.getpwnam(name).pw_uid == uid else None
    except KeyError:
        return None


class Sessions:
    """Sessions of users, each stored until its last part: the ranks of a node share a call of STS."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._stored: dict[int, tuple[float, dict[str, str]]] = {}
        self._locks: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def of(self, uid: int, name: str) -> dict[str, str]:
        """Return credentials as AWS's tools read them.

        Raises OSError, subprocess.SubprocessError, ValueError or KeyError.
        """
        with self._locks[uid]:
            ends, found = self._stored.get(uid, (0.0, {}))
            if time.monotonic() > ends - EARLY_S:
                ends, found = time.monotonic() + SESSION_S, self._begin(uid, name)
                self._stored[uid] = ends, found
        return found

    def _begin(self, uid: int, name: str) -> dict[str, str]:
        _, partition, _, _, account, _ = _sts("get-caller-identity")["Arn"].split(":", 5)
        role = f"arn:{partition}:iam::{account}:role/{self._role}"
        tags = json.dumps([{"Key": "user", "Value": name}])
        session = ["--role-session-name", f"{uid}-{name}"[:64], "--tags", tags]
        session += ["--duration-seconds", str(SESSION_S)]
        made = _sts("assume-role", "--role-arn", role, *session)["Credentials"]
        return {
            "AccessKeyId": made["AccessKeyId"],
            "SecretAccessKey": made["SecretAccessKey"],
            "Token": made["SessionToken"],
            "Expiration": made["Expiration"][:19] + "Z",
        }


def _sts(*arguments: str) -> dict[str, Any]:
    command = ["aws", "sts", *arguments, "--output", "json"]
    answer = subprocess.run(command, check=True, timeout=TIMEOUT_S, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


class Answer(http.server.BaseHTTPRequestHandler):
    """Answer to one request: credentials, or the reason why there are none."""

    timeout = 10
    sessions: Sessions

    def do_GET(self) -> None:
        """Answer any path."""
        uid = caller(self.connection)
        name = name_of(uid)
        status, body = 403, {"Message": f"the uid {uid} is no ordinary user of this node"}
        if uid is not None and name is not None:
            try:
                status, body = 200, self.sessions.of(uid, name)
            except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
                print(f"no credentials for {name}: {error}", file=sys.stderr, flush=True)
                status, body = 503, {"Message": "AWS gave no credentials: the node's log has the reason"}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: CloudTrail has each session."""


class Server(http.server.ThreadingHTTPServer):
    """A server whose users cannot use up the threads of this node's root service."""

    request_queue_size = 128

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002
        """Return False, which closes the connection, while too many are open."""
        return threading.active_count() < MOST_THREADS


def serve() -> Server | None:
    """Answer in the background; without a role of users (USERS_ROLE, its name), do nothing."""
    role = os.environ.get("USERS_ROLE")
    if not role:
        return None
    server = Server(ADDRESS, type("AnswerHere", (Answer,), {"sessions": Sessions(role)}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
