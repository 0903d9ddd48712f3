"""The report that job.slurm prints of a finished run."""

from __future__ import annotations

import re

from training_cluster.paths import TRAINING


def test_modules_that_scripts_run_exist() -> None:
    """A report that fails is one line in the log of a job that ended well, and easily missed."""
    scripts = [TRAINING / "job.slurm", *TRAINING.rglob("*.sh")]
    text = "\n".join(file.read_text("utf-8") for file in scripts)
    modules = set(re.findall(r"-m (trainkit[\w.]*)", text))
    assert "trainkit.run.report" in modules
    assert all((TRAINING / f"{name.replace('.', '/')}.py").is_file() for name in modules), modules
