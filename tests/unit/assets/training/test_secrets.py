"""Variables that name a secret: a file, or one of Secrets Manager, for which a program of the test stands."""

import os
import subprocess
from pathlib import Path

from tests.unit.assets.training.shell import JOB, bash
from training_cluster.paths import TRAINING

SCRIPT = f"""\
{JOB}
source "$training/job_settings.sh"
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


def test_a_stored_secret_reaches_the_job(tmp_path: Path) -> None:
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = ["bash", str(TRAINING / "secrets.sh"), "set", "WANDB_API_KEY"]
    done = subprocess.run(command, env=home, input="the\n-key\n", capture_output=True, text=True, check=True)
    assert "--env WANDB_API_KEY=file:.training-cluster/WANDB_API_KEY" in done.stdout
    assert "-key" not in done.stdout + done.stderr
    file, address = tmp_path / ".training-cluster" / "WANDB_API_KEY", "file:/not/a/secret"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    for path in (".training-cluster/WANDB_API_KEY", "~/.training-cluster/WANDB_API_KEY", str(file)):
        done = bash(SCRIPT, **home, WANDB_API_KEY=f"file:{path}", PLAIN=address)
        assert (done.returncode, done.stdout) == (0, f"the\n-key|{address}|"), done.stderr
    file.chmod(0o640)
    for path, why in ((str(file), "others can read it"), ("none", "there is no file")):
        done = bash(SCRIPT, **home, WANDB_API_KEY=f"file:{path}")
        assert (done.returncode, why in done.stderr, "-key" in done.stderr) == (1, True, False)
