"""Every subcommand of trainctl on a kept rehearsal, as a person types them; in their order."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.verify.checks import CHECKS
from ops.verify.nodes import NODE_CHECKS
from rehearsal.processes import find
from rehearsal.workspace import MARKER
from tests.slow.assets.training.training import wait_until
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FLAGS = ("-c", "family=p5")


class Terminal:
    """A shell that has sourced the rehearsal's env.sh."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.output = output
        """Output of the rehearsal."""
        self.own = folder / "own"
        self.own.mkdir()

    def type(self, *words: str, code: int = 0) -> str:
        """Run one line; what it printed on stdout. It must end with this code, and show no traceback."""
        line = f"source {self.folder}/env.sh && exec {shlex.join(words)}"
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=800)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code in (0, 1) and done.stdout else done.stderr

    def trainctl(self, *words: str, code: int = 0) -> str:
        return self.type("trainctl", *words, code=code)

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.trainctl(*words, "--json", code=code))


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("k")
    rehearse = [sys.executable, "-m", "ops", "rehearse", "--folder", str(folder)]
    run = [*rehearse, "--family", "p5", "--keep"]
    short = os.environ | {"MAX_STEPS": "60", "WARMUP_STEPS": "10"}
    try:
        done = subprocess.run(run, cwd=ROOT, env=short, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        yield Terminal(folder, done.stdout)
    finally:
        subprocess.run([*rehearse, "--stop"], cwd=ROOT, check=True)
    assert find({MARKER: str(folder)}) == set()


def test_a_rehearsal_trains_on_two_nodes(terminal: Terminal) -> None:
    for words in (
        "ParallelCluster's own stack: CREATE_COMPLETE",
        "gpu-dy-p5-1, gpu-dy-p5-2",
        "world size 2",
        "Emulated",
        "Left running",
        "Rehearsed in",
    ):
        assert words in terminal.output
    (metrics,) = (terminal.folder / "shared" / "runs" / "gpt2").glob("*/metrics.jsonl")
    rows = [row for row in map(json.loads, metrics.read_text().splitlines()) if "val_loss" not in row]
    assert {row["world_size"] for row in rows} == {2}
    assert rows[-1]["loss"] < rows[0]["loss"] - 1
    assert "gpt2/job-" in (terminal.folder / "report" / "run.html").read_text()
    assert list((terminal.folder / "shared" / "checkpoints" / "gpt2").glob("*/step-*"))


def test_status_shows_the_existing_cluster(terminal: Terminal) -> None:
    shown = terminal.trainctl("status")
    assert re.search(r"TrainingClusterStack +CREATE_COMPLETE", shown)
    for words in ("head node", "running", "gpu"):
        assert words in shown.lower()
    assert terminal.json("status")


def test_a_healthy_cluster_has_nothing_to_diagnose(terminal: Terminal) -> None:
    shown = terminal.trainctl("diagnose")
    assert "TrainingClusterStack is CREATE_COMPLETE since" in shown
    assert "Nothing to diagnose." in shown
    job = next(each["id"] for each in terminal.json("jobs", "--all")["ended"])
    assert terminal.trainctl("diagnose", "--job", job).startswith(f"Job {job} is COMPLETED.\nNothing to")


def test_preflight_finds_no_problem(terminal: Terminal) -> None:
    findings = terminal.json("preflight", *FLAGS)
    assert [each["check"] for each in findings["findings"] if each["verdict"] == "problem"] == []
    assert terminal.trainctl("preflight", *FLAGS)


def test_price_adds_up(terminal: Terminal) -> None:
    assert "USD" in terminal.trainctl("price", *FLAGS, "--tokens-per-s", "100000", "--offline")
    assert terminal.json("price", *FLAGS)["quote"]["why_catalog"], "this account has no price list"


def test_plan_tells_impossible_changes(terminal: Terminal) -> None:
    assert "the cluster agrees with these flags" in terminal.trainctl("plan", *FLAGS, "--no-diff")
    shown = terminal.trainctl("plan", *FLAGS, "-c", "fsx_type=scratch2", "--no-diff", code=1)
    assert "fsx_type" in shown
    assert "impossible" in shown


def test_the_trained_run_is_listed_and_reported(terminal: Terminal) -> None:
    (job,) = terminal.json("jobs", "--all")["ended"]
    assert job["state"] == "COMPLETED"
    assert job["id"] in terminal.trainctl("jobs", "--all")
    page = terminal.own / "run.html"
    assert "60" in terminal.trainctl("report", f"gpt2/job-{job['id']}", "--html", str(page))
    assert "<html" in page.read_text()
    assert terminal.json("report", f"job-{job['id']}")


def test_a_job_is_submitted_cancelled_and_followed(terminal: Terminal) -> None:
    asked = ("--nodes", "2", "--set", "MAX_STEPS=100000", "--set", "CHECKPOINT_EVERY=100000")
    job = str(terminal.json("submit", "gpt2", *asked, "--name", "long")["job_id"])
    run = terminal.folder / "shared" / "runs" / "gpt2" / "long"
    metrics = run / "metrics.jsonl"
    wait_until(lambda: metrics.is_file() and metrics.read_text() != "", timeout_s=300, what="no step")
    assert job in terminal.trainctl("jobs")
    terminal.trainctl("diagnose", "--job", job, "--bundle", str(terminal.own / "b.tar.gz"), code=1)
    assert job in terminal.trainctl("cancel", job)
    # It saves and ends by itself first.
    terminal.trainctl("logs", job, "--follow", code=1)
    at = (run / "outcome").read_text().removeprefix("stopped ").strip()
    checkpoints = terminal.folder / "shared" / "checkpoints" / "gpt2" / "long"
    assert (checkpoints / "latest_step").read_text().strip() == at
    terminal.trainctl("cancel", job, code=1)


def test_verify_judges_each_check_and_leaves_nothing(terminal: Terminal) -> None:
    shared = terminal.folder / "shared"
    folders = [shared / kind / name for kind in ("runs", "checkpoints") for name in ("gpt2", "nccl-tests")]
    before = [sorted(folder.iterdir()) for folder in folders]
    page = terminal.own / "verify.html"
    found = terminal.json("verify", "--nodes", "1", "--html", str(page))
    assert [each["id"] for each in found["checks"]] == [each.id for each in (*CHECKS, *NODE_CHECKS)]
    verdicts = {each["id"]: each["verdict"] for each in found["checks"]}
    assert found["counts"]["differs"] == 0
    for name in (
        "own-stack-time",
        "library-version",
        "slurm-killwait",
        "slurm-prologflags",
        "dashboard",
        "training",
        "world-size",
    ):
        assert verdicts[name] == "held"
    unseen = [each for each in found["checks"] if each["verdict"] == "could not look"]
    reasons = {e["seen"] for e in unseen if e["id"] not in ("efa", "scaled-down", "scaled-down-later")}
    alone = "nccl-tests was not judged: Give --nodes 2, or a type with more GPUs."
    assert reasons == {"this is a rehearsal", alone}
    for text in (page.read_text(), json.dumps(found)):
        assert not re.search(r"\b\d{12}\b|arn:aws|\b(?:i|fs|sg|vpc)-[0-9a-f]{8}", text)
    assert [sorted(folder.iterdir()) for folder in folders] == before


def test_connect_runs_a_command_and_no_shell(terminal: Terminal) -> None:
    assert "gpu" in terminal.trainctl("connect", "--", "sinfo", "--all")
    assert "has no shell" in terminal.trainctl("connect", "--print", code=1), "only AWS has one"


def test_data_goes_to_the_bucket_and_back(terminal: Terminal) -> None:
    corpus = terminal.own / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("some text\n")
    terminal.trainctl("sync", "up", str(corpus), "datasets/corpus")
    (corpus / "a.txt").unlink()
    (corpus / "b.txt").write_text("more\n")
    terminal.trainctl("sync", "up", str(corpus), "datasets/corpus")
    terminal.trainctl("sync", "down", "datasets/corpus", str(terminal.own / "back"))
    assert sorted(each.name for each in (terminal.own / "back").iterdir()) == ["a.txt", "b.txt"]
    said = terminal.trainctl("sync", "up", str(corpus), "bootstrap/training", code=2)
    assert "bootstrap" in said


def test_a_job_asks_its_nodes_service(terminal: Terminal) -> None:
    program = str(terminal.folder / "shared" / "training" / "nodes.sh")
    said = terminal.type("srun", "--nodes=1", "--exclusive", "--mpi=none", "bash", program, "answer", "1")
    log = terminal.folder / "node" / "root" / "var" / "log" / "training-cluster" / "health.log"
    assert f"{said.strip()}, between starts of a job: healthy" in log.read_text()
