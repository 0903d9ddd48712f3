"""trainctl top and dashboards: figures of a real HTTP server, a forwarded port, exported boards."""

import io
import json
import re
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ops.cli import app
from ops.dashboards.export import export
from ops.dashboards.figures import read_figures
from ops.dashboards.forward import forwarded, free_port
from ops.dashboards.prometheus import Prometheus
from ops.dashboards.screen import MOST_NODES, render
from ops.usage import OpsError
from tests.unit.ops.jobs_head_node import HEAD_NODE, PlayedCluster

NODE = {"node": "gpu-dy-p4d-1", "partition": "gpu"}
JOB = {"job": "7", "user": "ann", "partition": "gpu"}
ANSWERS: dict[str, list[tuple[dict[str, str], float]]] = {
    "slurm_job_info": [({**JOB, "name": "train"}, 1)],
    "slurm_job_nodes": [(JOB, 2)],
    "time() - slurm_job_start_seconds": [(JOB, 3700)],
    "training_step": [({**JOB, "workload": "gpt2"}, 41)],
    "training_loss": [(JOB, 2.5)],
    "training_tokens_per_second": [(JOB, 123456)],
    "slurm_node_state": [({**NODE, "state": "allocated"}, 1), ({"node": "gpu-dy-p4d-2", "state": "down"}, 1)],
    "slurm_node_job_info": [({**NODE, **JOB}, 1)],
    "slurm_node_out_since_seconds": [({"node": "gpu-dy-p4d-2", "reason": "XID \x1b[31m79"}, 5)],
    'slurm_jobs{state="pending"}': [({"user": "bob"}, 3)],
    "cluster_usd_per_hour": [({"partition": "gpu"}, 43.92), ({"partition": "head"}, 0.68)],
    'ALERTS{alertstate="firing"}': [
        ({"__name__": "ALERTS", "alertname": "NodeOut", "severity": "warning", "node": "gpu-dy-p4d-2"}, 1)
    ],
}


class Answering(BaseHTTPRequestHandler):
    """Answers as Prometheus's API does."""

    def do_GET(self) -> None:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["query"][0]
        found = [{"metric": labels, "value": [0, str(value)]} for labels, value in ANSWERS.get(query, [])]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": {"result": found}}).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _screen(url: str) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(render(read_figures(Prometheus(url).ask)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_the_screen_has_jobs_users_nodes_and_alerts(url: str) -> None:
    text = _screen(url)
    for words in (
        "1 allocated, 1 down",
        "3 pending",
        "123,456 tokens/s",
        "44.60 USD",
        "ann",
        "gpt2",
        "1h01m",
    ):
        assert words in text, words
    assert "warning: NodeOut: node gpu-dy-p4d-2" in text
    assert "XID" in text
    assert "\x1b[31m" not in text, "a reason cannot colour the terminal"


def test_the_screen_has_what_there_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "training_step", [])
    monkeypatch.setitem(ANSWERS, "training_loss", [])
    (job,) = read_figures(Prometheus(url).ask).jobs
    assert (job.step, job.loss, job.workload, job.gpu_use) == (None, None, None, None)
    many = [({"node": f"gpu-dy-p4d-{i}", "state": "idle"}, 1.0) for i in range(1, 300)]
    monkeypatch.setitem(ANSWERS, "slurm_node_state", many)
    text = _screen(url)
    assert "XID" in text
    assert f"{299 - MOST_NODES} more nodes" in text


def test_once_and_json_need_no_terminal(url: str) -> None:
    once = CliRunner().invoke(app, ["top", "--once", "--url", url])
    assert once.exit_code == 0
    assert "ann" in once.stdout
    read = json.loads(CliRunner().invoke(app, ["top", "--json", "--url", f"{url}/"]).stdout)
    assert read["jobs"][0]["user"] == "ann"
    assert (read["nodes"][0]["jobs"], read["nodes"][1]["reason"][:3]) == (["7"], "XID")


def test_what_does_not_open_says_why() -> None:
    said = r"does not answer as Prometheus: \[Errno \d+\] Connection refused\.\n.*metrics=prometheus"
    with pytest.raises(OpsError, match=said):
        Prometheus(f"http://127.0.0.1:{free_port()}").ask("up")
    command = [sys.executable, "-c", "import sys; sys.exit('TargetNotConnected: i-1')"]
    with pytest.raises(OpsError, match="TargetNotConnected"), forwarded(command, free_port()):
        pass


def test_boards_are_exported(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["dashboards", "--export", str(tmp_path / "a" / "b")])
    assert done.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert len(names) == 6
    assert "training-cluster-gpus.json" in names
    (tmp_path / "file").write_text("")
    with pytest.raises(OpsError, match="cannot be written"):
        export(tmp_path / "file" / "x")


FORWARDS = """\
#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
open({said!r}, "w").write(" ".join(sys.argv[1:]))
class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(b'{{"data": {{"result": []}}}}')
HTTPServer(("127.0.0.1", int(sys.argv[-1].rpartition("=")[2])), Answers).serve_forever()
"""


def test_one_session_of_session_manager_carries_all_questions(
    cluster: PlayedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    for name in ("aws", "session-manager-plugin"):
        program = tmp_path / name
        program.write_text(FORWARDS.format(python=sys.executable, said=str(said)))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = CliRunner().invoke(app, ["top", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["jobs"] == []
    asked = re.fullmatch(
        f"ssm start-session --region us-east-1 --target {HEAD_NODE} --document-name "
        r"AWS-StartPortForwardingSession --parameters portNumber=9090,localPortNumber=(\d+)",
        said.read_text(),
    )
    assert asked
    with pytest.raises(OpsError, match="Connection refused"):
        Prometheus(f"http://127.0.0.1:{asked[1]}").ask("up")
