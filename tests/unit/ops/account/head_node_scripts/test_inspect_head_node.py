"""inspect-head-node.sh prints the facts that `trainctl verify` compares, and fails for none of them."""

import os
import subprocess
from pathlib import Path

from training_cluster.paths import ROOT

SCRIPT = ROOT / "ops" / "account" / "head_node_scripts" / "inspect-head-node.sh"
BOOTSTRAP = """\
01:19:36 bootstrap: step 60-install-job-environment: done, 0 s
01:19:37 bootstrap: step 72-enable-containers: failed, optional, 1 s: no
"""
CFN_INIT = """\
2026-11-05 16:25:12,345 [INFO] -----------------------Starting build-----------------------
2026-11-05 16:26:00,000 [ERROR] Command failed
2026-11-05 16:34:42,345 [INFO] ConfigSets completed
"""


def facts(root: Path) -> dict[str, str]:
    environment = {"PATH": os.environ["PATH"], "TRAINING_ROOT": str(root)}
    command = ["bash", str(SCRIPT), str(root), str(root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_the_facts_of_a_node_are_printed(tmp_path: Path) -> None:
    files = {
        "var/log/training-cluster/bootstrap.log": BOOTSTRAP,
        "var/log/cfn-init.log": CFN_INIT,
        "usr/local/lib/slurm/spank_pyxis.so": "",
        "training/job.slurm": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = facts(tmp_path)
    assert found.pop("mount-lustre") == found.pop("mount-efs") != ""
    assert found.pop("script").endswith(" -rw-r--r--")
    assert found == {
        "bootstrap": "2 lines, 1 failed steps",
        "cfn-init-begin": "2026-11-05 16:25:12",
        "cfn-init-end": "2026-11-05 16:34:42",
        "cfn-init-errors": "1",
        "pyxis": "yes",
        "pyxis-enabled": "no",
        "enroot": "no",
    }


def test_missing_files_of_a_node_are_no_failure(tmp_path: Path) -> None:
    found = facts(tmp_path)
    assert found["bootstrap"] == found["cfn-init"] == "unreadable"
    assert (found["script"], found["pyxis"]) == ("", "no")
