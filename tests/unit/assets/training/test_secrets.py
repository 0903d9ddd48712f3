"""Variables that name a secret of Secrets Manager; a program of the test stands for the AWS CLI."""

import os
from pathlib import Path

from tests.unit.assets.training.shell import JOB, bash

SCRIPT = f"""\
{JOB}
source "$training/restarts.sh"
source "$training/secrets.sh"
read_secrets
printf '%s|' "${{WANDB_API_KEY:-}}" "${{PLAIN:-}}"
"""
AWS = """\
#!/bin/bash
wanted="--region eu-west-1 secretsmanager get-secret-value --secret-id training/wandb "
[[ "$*" == "$wanted"* ]] || { echo "An error occurred (ResourceNotFoundException)" >&2; exit 254; }
echo the-key
"""


def test_a_secret_replaces_its_name(tmp_path: Path) -> None:
    programs, config = tmp_path / "bin", tmp_path / "etc" / "parallelcluster"
    for folder in (programs, config):
        folder.mkdir(parents=True)
    (programs / "aws").write_text(AWS)
    (programs / "aws").chmod(0o755)
    (config / "cfnconfig").write_text("stack_name=training\ncfn_region=eu-west-1\n")
    node = {"PATH": f"{programs}:{os.environ['PATH']}", "TRAINING_ROOT": str(tmp_path)}
    done = bash(SCRIPT, **node, WANDB_API_KEY="secret:training/wandb", PLAIN="a secret: none")
    assert (done.returncode, done.stdout) == (0, "the-key|a secret: none|")
    assert "the-key" not in done.stderr
    for name, value, words in (
        ("WANDB_API_KEY", "secret:other", "the secret of WANDB_API_KEY cannot be read: An error occurred"),
        ("PLAIN", "secret:training/wandb", "its value would be in reports"),
    ):
        done = bash(SCRIPT, **node, **{name: value})
        assert (done.returncode, words in done.stderr) == (1, True)
        assert "the-key" not in done.stdout + done.stderr
