"""A command on the head node: how long it may take, and what is known of one that gives no answer."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ops.head_node import CommandError, HeadNode, NoEndError, NotStartedError
from rehearsal.local_aws.head_node_agent import WORKERS
from tests.unit.jobs_head_node import PlayedCluster, cluster

__all__ = ["cluster"]
HANG = "for _ in {1..200}; do sleep 0.1; done"


def test_each_command_has_an_end_on_the_head_node(cluster: PlayedCluster) -> None:
    cluster.head_node.run("squeue")
    (sent,) = cluster.sent
    assert sent["TimeoutSeconds"] == 30
    assert sent["Parameters"]["executionTimeout"] == ["90"]


def test_commands_that_hang_let_go_of_the_agent(cluster: PlayedCluster) -> None:
    cluster.does("squeue", HANG)
    head_node, ended = cluster.head_node, list[str]()

    def hang() -> None:
        with pytest.raises(NoEndError) as given_up:
            head_node.run("squeue", limit_s=1)
        ended.append(str(given_up.value))

    threads = [threading.Thread(target=hang) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    assert head_node.run("sinfo").startswith("gpu*")
    for thread in threads:
        thread.join(60)
    assert len(ended) == WORKERS
    assert "squeue did not end within 1 s" in ended[0]


def test_a_command_that_never_started_was_not_run_and_is_told_so(cluster: PlayedCluster) -> None:
    cluster.delivery_s = 0.2
    over = cluster.shared.parent / "over"
    cluster.does("squeue", f"for _ in {{1..300}}; do [[ ! -e {over} ]] || exit 0; sleep 0.1; done")
    head_node = cluster.head_node
    with ThreadPoolExecutor(WORKERS) as pool:
        hung = []
        for number in range(1, WORKERS + 1):  # one by one: each has a fifth of a second to start
            hung.append(pool.submit(head_node.run, "squeue"))
            while len([each for each in cluster.calls if each[0] == "squeue"]) < number:
                time.sleep(0.02)
        with pytest.raises(NotStartedError) as refused:
            head_node.run("sinfo")
        over.touch()
        assert [each.result(60) for each in hung] == [""] * WORKERS
    assert "so it was not run" in str(refused.value)
    assert not [each for each in cluster.calls if each[0] == "sinfo"]


def test_a_command_without_any_answer_is_cancelled(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.head_node._GRACE_S", -30)
    cluster.account.answers["GetCommandInvocation"] = {"Status": "InProgress"}
    cluster.does("squeue", HANG)
    with pytest.raises(NoEndError):
        cluster.head_node.run("squeue", limit_s=1)
    assert "CancelCommand" in cluster.account.asked


def test_an_interrupt_cancels_the_command(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: dict[str, Any]) -> Any:
        raise KeyboardInterrupt

    cluster.account.answers["GetCommandInvocation"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        cluster.head_node.run("squeue")
    assert "CancelCommand" in cluster.account.asked


def test_what_a_failed_program_said_on_both_outputs_is_told_and_nothing_of_the_agent(
    cluster: PlayedCluster,
) -> None:
    cluster.says("squeue", "partly done\n", error="no contact\n", code=3)
    with pytest.raises(CommandError) as failed:
        cluster.head_node.run("squeue")
    assert str(failed.value) == "squeue: no contact\npartly done"
    cluster.says("squeue", "", code=3)
    with pytest.raises(CommandError) as failed:
        cluster.head_node.run("squeue")
    assert str(failed.value) == "squeue: exit code 3"


class _Silent(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/fails"):
            self.send_error(500)
        self.connection.close()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def silent() -> Iterator[str]:
    """An endpoint that takes each request and closes the connection."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("answer", ["none", "fails"])
def test_a_request_whose_answer_is_lost_is_not_repeated(silent: str, answer: str) -> None:
    _Silent.asked = 0
    ssm = boto3.client(
        "ssm",
        region_name="us-east-1",
        endpoint_url=f"{silent}/{answer}",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"mode": "standard", "max_attempts": 3}),
    )
    with pytest.raises(NoEndError, match="may have run"):
        HeadNode(cluster_name="training", instance_id="i-0aaaaaaaaaaaaaaaa", ssm=ssm).run("sbatch", "x")
    assert _Silent.asked == 1
