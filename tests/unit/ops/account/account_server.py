"""A fake AWS for trainctl as a process: it answers only STS and logs each request's region."""

import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SIGNED = re.compile(r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/")
_NAMESPACE = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
_IDENTITY = (
    f"<GetCallerIdentityResponse {_NAMESPACE}><GetCallerIdentityResult>"
    "<Arn>arn:aws:iam::123456789012:user/a</Arn><UserId>A</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
)
_ROLE = (
    f"<AssumeRoleResponse {_NAMESPACE}><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>"
    "<SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>"
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
)
_REFUSED = (
    f"<ErrorResponse {_NAMESPACE}><Error><Type>Sender</Type><Code>{{}}</Code><Message>no</Message></Error>"
    "</ErrorResponse>"
)


@dataclass(frozen=True)
class Asked:
    """One request, as it was signed."""

    operation: str
    key: str
    region: str


@dataclass
class AccountServer:
    """An account; `regions_off` take no credentials."""

    url: str = ""
    regions_off: frozenset[str] = frozenset()
    page: str = ""
    """Page of a proxy, which answers in the account's place."""
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> tuple[int, str]:
        """Give the status and body of an answer."""
        self.asked.append(asked)
        if self.page:
            return 200, self.page
        if asked.region in self.regions_off:
            return 403, _REFUSED.format("InvalidClientTokenId")
        if asked.operation == "GetCallerIdentity":
            return 200, _IDENTITY
        if asked.operation == "AssumeRole":
            return 200, _ROLE
        return 403, _REFUSED.format("AccessDenied")


@contextmanager
def account_server() -> Iterator[AccountServer]:
    """Serve an account until the end of the block."""
    account = AccountServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            signed = _SIGNED.search(self.headers.get("Authorization", ""))
            operation = urllib.parse.parse_qs(body).get("Action", [self.headers.get("X-Amz-Target", "")])[0]
            key, region = (signed["key"], signed["region"]) if signed else ("", "")
            status, text = account.answer(Asked(operation, key, region))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST  # noqa: N815 - its name is http.server's

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    account.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield account
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
