"""A webhook on this machine that keeps the texts that it gets."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SECRET = "T000/B000/very-secret"


@dataclass
class Webhook:
    """An address with a secret, the answer that it gives, and the texts so far."""

    address: str = ""
    answer: int = 200
    got: list[str] = field(default_factory=list)


@contextmanager
def webhook_server() -> Iterator[Webhook]:
    """Serve until the end of the block."""
    webhook = Webhook()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.got.append(json.loads(body)["text"])
            self.send_response(webhook.answer)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        webhook.address = f"http://127.0.0.1:{server.server_port}/services/{SECRET}"
        yield webhook
        server.shutdown()
