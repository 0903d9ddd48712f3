"""Variables that name a secret of Secrets Manager; a program of the test stands for the AWS CLI."""

import os
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

SCRIPT = """\
set -euo pipefail
die() {{ printf 'job.slurm: %s\\n  %s\\n' "$1" "$2" >&2; exit 1; }}
training={training} workload=titan
source {training}/restarts.sh
source {training}/secrets.sh
read_secrets
printf '%s|' "${{WANDB_API_KEY:-}}" "${{PLAIN:-}}"
"""
AWS = """\
#!/bin/bash
wanted="--region eu-west-1 secretsmanager get-secret-value --secret-id training/wandb "
[[ "$*" == "$wanted"* ]] || { echo "An error occurred (ResourceNotFoundException)" >&2; exit 254; }
echo the-key
"""


def read(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Call read_secrets on a node of eu-west-1."""
    programs, config = tmp_path / "bin", tmp_path / "etc" / "parallelcluster"
    for folder in (programs, config):
        folder.mkdir(parents=True)
    (programs / "aws").write_text(AWS)
    (programs / "aws").chmod(0o755)
    (config / "cfnconfig").write_text("stack_name=training\ncfn_region=eu-west-1\n")
    node = {"PATH": f"{programs}:{os.environ['PATH']}", "TRAINING_ROOT": str(tmp_path)}
    script = SCRIPT.format(training=TRAINING)
    return subprocess.run(["bash", "-c", script], env=node | env, capture_output=True, text=True, check=False)


def test_a_secret_takes_the_place_of_its_name_and_other_variables_stay(tmp_path: Path) -> None:
    done = read(tmp_path, WANDB_API_KEY="secret:training/wandb", PLAIN="a secret: none")
    assert (done.returncode, done.stdout) == (0, "the-key|a secret: none|")
    assert "the-key" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WANDB_API_KEY", "secret:other", "the secret of WANDB_API_KEY cannot be read: An error occurred"),
        ("PLAIN", "secret:training/wandb", "its value would be in reports"),
    ],
)
def test_a_secret_that_cannot_be_read_or_would_be_shown_ends_the_job(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    done = read(tmp_path, **{name: value})
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "the-key" not in done.stdout + done.stderr
