"""Two people on one cluster, with the real slurmctld, slurmdbd and users: who may do what, who used what."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from training_cluster.paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.root,
]
GPUS = 8
"""GPUs of a p4d."""


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("people")
    done = subprocess.run(
        [sys.executable, "-m", "rehearsal.people", str(folder / "world"), "--json", "--deploys=200"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_second_user_takes_nothing_of_the_first_and_both_run_their_own(happened: dict[str, Any]) -> None:
    assert happened["taken"] == []
    assert {name: len(jobs) for name, jobs in happened["jobs"].items()} == {"alice": 5, "bob": 5}


def test_a_locked_user_cannot_log_in_or_submit_and_keeps_the_files(happened: dict[str, Any]) -> None:
    assert happened["locked"] == []


def test_jobs_beyond_the_limits_of_the_file_do_not_start(happened: dict[str, Any]) -> None:
    assert "Invalid account" in happened["refused"]["other account"]
    assert happened["refused"]["nodes of the account"] == "AssocGrpNodeLimit"


def test_shares_are_those_of_the_file(happened: dict[str, Any]) -> None:
    rows = [line.strip().split("|") for line in happened["shares"].splitlines()]
    assert {(account, user): share for account, user, share in rows if account in {"nlp", "vision"}} == {
        ("nlp", ""): "3",
        ("nlp", "alice"): "1",
        ("vision", ""): "1",
        ("vision", "bob"): "1",
    }


def test_usage_sums_what_sacct_lists(happened: dict[str, Any]) -> None:
    jobs, node_s = defaultdict[str, int](int), defaultdict[str, int](int)
    for line in happened["sacct"]:
        user, _, _, seconds, nodes = line.split("|")
        if int(seconds):
            jobs[user] += 1
            node_s[user] += int(seconds) * int(nodes)
    assert {user: found[0] for user, found in happened["usage"].items()} == dict(jobs)
    for user, (_, node_hours, gpu_hours) in happened["usage"].items():
        assert node_hours * 3600 == pytest.approx(node_s[user])
        assert gpu_hours == pytest.approx(node_hours * GPUS)
    assert sum(happened["by_week"]) == sum(jobs.values())
    assert happened["by_account"] == {"nlp": jobs["alice"], "vision": jobs["bob"]}
