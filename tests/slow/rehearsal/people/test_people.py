"""Two people on one cluster, with the real slurmctld, slurmdbd and users: who may do what, who used what."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.root]
GPUS = 8
"""GPUs of a p4d."""


def test_two_people_share_a_cluster(tmp_path: Path) -> None:
    """The program fails if bob takes something of alice's; usage sums what sacct lists."""
    options = ("--only=cluster", "--json", "--deploys=200")
    done = subprocess.run(
        [sys.executable, "-m", "rehearsal.people", str(tmp_path / "world"), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    happened = json.loads(done.stdout.splitlines()[-1])
    assert "Invalid account" in happened["refused"]["other account"]
    assert happened["refused"]["nodes of the account"] == "AssocGrpNodeLimit"
    shares = dict(line.strip().rsplit("|", 1) for line in happened["shares"].splitlines())
    assert [shares[f"nlp|{user}"] for user in ("", "alice")] == ["3", "1"]
    assert [shares[f"vision|{user}"] for user in ("", "bob")] == ["1", "1"]
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
