"""Weights of the hub, asked for before a node starts; a server of the test stands for the hub."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ops.jobs.hub import check_weights
from ops.usage import UsageError


@pytest.fixture
def hub() -> Iterator[str]:
    """A hub with an open repository, a gated one, and nothing else; its address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            owner, name, _, revision, _ = self.path.strip("/").split("/")
            if owner != "org":
                self._refuse(401, "RepoNotFound")
            elif revision != "main":
                self._refuse(404, "RevisionNotFound")
            elif name == "gated":
                self._refuse(401, "GatedRepo")
            elif name == "broken":
                self._refuse(503, "")
            else:
                self.send_response(200)
                self.end_headers()

        def _refuse(self, status: int, code: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def check(hub: str, init_from: str, *, workload: str = "titan", **variables: str) -> str:
    return check_weights(workload, {"INIT_FROM": init_from}, {"HF_ENDPOINT": hub, **variables})


@pytest.mark.parametrize("init_from", ["org/open", "org/open@main", "/fsx/weights", "s3://bucket/folder", ""])
def test_downloadable_weights_and_foreign_names_pass(hub: str, init_from: str) -> None:
    assert check(hub, init_from) == ""


@pytest.mark.parametrize(
    ("init_from", "sentence"),
    [
        ("none/there", "no such repository"),
        ("org/open@v9", "no such revision"),
        ("org/gated", r"gated, and the job has no HF_TOKEN\.\n  open: .*/org/gated"),
    ],
)
def test_what_the_hub_refuses_is_refused(hub: str, init_from: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        check(hub, init_from)


def test_what_cannot_be_asked_is_a_note(hub: str) -> None:
    assert "only the job reads its token" in check(hub, "org/gated", HF_TOKEN="secret:hf")
    assert "the hub answers 503" in check(hub, "org/broken")
    assert "does not answer here" in check("http://127.0.0.1:9", "org/open")
    assert check(hub, "none/there", workload="gpt2-megatron") == ""
    with pytest.raises(UsageError):
        check(hub, "none/there", workload="gpt2")
