"""A command on the head node: how long it may take, and what is known of one that gives no answer."""

import http.server
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ops.account.head_node import CommandError, HeadNode, NoEndError, NotStartedError, as_user
from ops.account.region_and_profile import choose_account
from ops.usage import OpsError
from rehearsal.local_aws.head_node.agent import BUFFER, WORKERS
from tests.unit.ops.jobs_head_node import PlayedCluster
from training_cluster.users.model import caller_keys

HANG = "for _ in {1..200}; do sleep 0.1; done"


def test_each_command_has_a_time_limit(cluster: PlayedCluster) -> None:
    cluster.head_node.run("squeue")
    (sent,) = cluster.sent
    assert (sent["TimeoutSeconds"], sent["Parameters"]["executionTimeout"]) == (30, ["90"])


@pytest.mark.parametrize("shell", [("sh",), ("bash", "--posix")])
def test_the_agents_shell_hands_every_word_over_unchanged(tmp_path: Path, shell: tuple[str, ...]) -> None:
    """Ubuntu's sh is dash, Amazon Linux's is bash; the agent runs `sh`. cfnconfig has lists of bash."""
    words = ["a b", "$HOME", "it's", 'a"b', "`id`", "\\n", "*", "", "line\nend", "!x", "ü", "-n"]
    (tmp_path / "cfnconfig").write_text("cfn_preinstall_args=()\ncfn_cluster_user=ubuntu\n")
    (tmp_path / ".bash_profile").write_text("echo Welcome to my shell\n")
    (tmp_path / "sudo").write_text('#!/bin/sh\n[ "$3" = ubuntu ] && shift 4 && exec "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    script = as_user("printf", "%s\\0", *words)
    script = script.replace("/etc/parallelcluster/cfnconfig", str(tmp_path / "cfnconfig"))
    done = subprocess.run(
        [*shell, "-c", script],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\0")[:-1] == words


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(
    ("user", "arn", "runs_as"),
    [
        (None, "arn:aws:sts::123456789012:assumed-role/nlp/alice@example.com", "alice"),
        (None, "arn:aws:sts::123456789012:assumed-role/nlp/somebody", "bob"),
        (None, "arn:aws:iam::123456789012:user/team/carol", "carol"),
        (None, "arn:aws:iam::123456789012:user/0017", "carol"),
        ("bob", "arn:aws:iam::123456789012:user/team/carol", "bob"),
        ("ubuntu", "arn:aws:iam::123456789012:user/none", "ubuntu"),
        (None, "arn:aws:iam::123456789012:user/none", "arn:aws:iam::123456789012:user/none) is nobody of"),
        ("eve", "arn:aws:iam::123456789012:user/team/carol", "eve is no user of this cluster"),
        ("dave", "arn:aws:iam::123456789012:user/team/carol", "dave is no user of this cluster"),
    ],
)
def test_command_runs_as_caller(tmp_path: Path, shell: str, user: str | None, arn: str, runs_as: str) -> None:
    """A cluster with the users alice, bob, carol, and dave, who is locked."""
    people = "".join(
        f"{name} 500{n} active user - - users 1 - -\n" for n, name in enumerate(("alice", "bob", "carol"))
    )
    (tmp_path / "users").write_text(f"{people}dave 5009 locked user - - users 1 - -\n")
    callers = {"alice@example.com": "alice", "123456789012:role/nlp": "bob", "carol": "carol"}
    callers |= {"17": "alice", "0017": "carol"}  # names, not numbers
    (tmp_path / "callers").write_text("".join(f"{key} {name}\n" for key, name in callers.items()))
    (tmp_path / "cfnconfig").write_text("cfn_cluster_user=ubuntu\n")
    (tmp_path / "sudo").write_text('#!/bin/sh\nprintf %s "$3"\n')
    (tmp_path / "sudo").chmod(0o755)
    script = as_user("true", user=user, callers=caller_keys(arn))
    script = script.replace("/etc/parallelcluster", str(tmp_path)).replace(
        "/etc/training-cluster", str(tmp_path)
    )
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def ran() -> subprocess.CompletedProcess[str]:
        return subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True)

    if (done := ran()).returncode:
        assert done.stderr.startswith("trainctl: ") and runs_as in done.stderr
    else:
        assert done.stdout == runs_as
    if not user:
        (tmp_path / "users").unlink()
        assert ran().stdout == "ubuntu", "without users, the cluster's own runs it"


def test_an_unknown_user_is_told_what_to_type(cluster: PlayedCluster) -> None:
    choose_account(region=None, profile=None, user="eve")
    try:
        with pytest.raises(OpsError, match="eve is no user of this cluster") as error:
            cluster.head_node.run("squeue")
    finally:
        choose_account(region=None, profile=None)
    assert "trainctl --as NAME" in str(error.value)


class _Busy:
    """Commands that hang on the head node until they are let go."""

    def __init__(self, cluster: PlayedCluster, count: int) -> None:
        self._over = cluster.shared.parent / "over"
        cluster.does("squeue", f"for _ in {{1..300}}; do [[ ! -e {self._over} ]] || exit 0; sleep 0.1; done")
        self._pool = ThreadPoolExecutor(count)
        self._hung = [self._pool.submit(cluster.head_node.run, "squeue") for _ in range(count)]
        while len(cluster.taken) < count or len(cluster.calls) < min(count, WORKERS):
            time.sleep(0.02)

    def let_go(self) -> None:
        self._over.touch()
        assert [each.result(60) for each in self._hung] == [""] * len(self._hung)
        self._pool.shutdown()


def test_an_undelivered_command_is_reported_as_not_run(cluster: PlayedCluster) -> None:
    busy = _Busy(cluster, WORKERS + BUFFER)
    cluster.delivery_s = 0.2
    with pytest.raises(NotStartedError) as refused:
        cluster.head_node.run("sinfo")
    busy.let_go()
    assert "so it was not run" in str(refused.value)
    assert not cluster.called("sinfo")


@pytest.mark.parametrize("details", ["DeliveryTimedOut", "Delivery Timed Out", "Undeliverable"])
def test_only_a_failed_delivery_means_not_run(cluster: PlayedCluster, details: str) -> None:
    ended = {"Status": "TimedOut", "StatusDetails": details, "ExecutionStartDateTime": ""}
    cluster.account.answers["GetCommandInvocation"] = ended
    with pytest.raises(NotStartedError):
        cluster.head_node.run("squeue")
    cluster.account.answers["GetCommandInvocation"] = ended | {"StatusDetails": "Execution Timed Out"}
    assert "CancelCommand" not in cluster.account.asked
    with pytest.raises(NoEndError, match="is cancelled"):
        cluster.head_node.run("squeue")
    assert "CancelCommand" in cluster.account.asked


@pytest.mark.slow
def test_a_command_without_any_answer_is_cancelled(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.account.head_node._GRACE_S", -30)
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


def test_both_outputs_of_a_failed_program_are_shown(cluster: PlayedCluster) -> None:
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
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("answer", ["none", "fails"])
@pytest.mark.parametrize(("reads_only", "times"), [(False, 1), (True, 3)])
def test_only_reads_are_repeated_after_a_lost_answer(
    silent: str, answer: str, reads_only: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.account.head_node._PAUSES_S", (0.0, 0.0))
    _Silent.asked = 0
    ssm = boto3.client(
        "ssm",
        region_name="us-east-1",
        endpoint_url=f"{silent}/{answer}",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"mode": "standard", "max_attempts": 3}),
    )
    head_node = HeadNode(cluster_name="training", instance_id="i-0aaaaaaaaaaaaaaaa", ssm=ssm)
    with pytest.raises(NoEndError, match="may have run"):
        head_node.run("sbatch", "x", reads_only=reads_only)
    assert _Silent.asked == times
