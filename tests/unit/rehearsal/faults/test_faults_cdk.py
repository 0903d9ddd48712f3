"""`make faults` spares the CDK CLI's waiting: one synth for each set of flags, none for a bootstrap."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rehearsal.cdk import CdkCli
from rehearsal.faults import assemblies
from rehearsal.narrator import Narrator
from training_cluster.paths import ROOT

# Stands for the CLI: writes down what it was asked, and takes a moment.
_CLI = '#!/bin/sh\nprintf "%s|" "$@" >> asked\necho >> asked\nsleep 0.2\n'
_HASTE = ROOT / "rehearsal" / "cdk_poll_interval.cjs"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    cli = tmp_path / "node_modules" / ".bin" / "cdk"
    cli.parent.mkdir(parents=True)
    cli.write_text(_CLI)
    cli.chmod(0o755)
    return tmp_path


def _asked(project: Path) -> list[str]:
    return (project / "asked").read_text().splitlines()


def test_workers_that_want_the_same_flags_share_one_synth(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemblies, "ROOT", project)
    shared = assemblies.Assemblies(project / "assemblies", Narrator())
    wanted = [{"family": "m6i", "nodes": "5"}, {"nodes": "5", "family": "m6i"}, {"family": "m6i"}, {}]
    with ThreadPoolExecutor(4) as workers:
        found = list(workers.map(lambda flags: shared.of(flags, dict(os.environ)), wanted))
    assert found[0] == found[1]
    assert len(set(found)) == len(_asked(project)) == 3
    assert sum("|-c|family=m6i|-c|nodes=5|" in line for line in _asked(project)) == 1


def test_a_bootstrap_synthesises_no_app(project: Path) -> None:
    cli = CdkCli(project=project, environment=os.environ, logs=project, narrator=Narrator())
    cli.run("bootstrap", "aws://123456789012/us-east-1", output=project / "cdk.out")
    assert "|--app||" in _asked(project)[0]
    cli.run("destroy", "TrainingClusterStack", "--app", "elsewhere")
    assert "--output" not in _asked(project)[1]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "is_hasty"), [("cdk", True), ("program.js", False)])
def test_only_the_cli_looks_more_often_than_each_5_s(tmp_path: Path, program: str, is_hasty: bool) -> None:
    script = tmp_path / program
    script.write_text(
        "const began = Date.now(); setTimeout(() => console.log(Date.now() - began), 5000);"
        "setTimeout(() => { console.log('other'); }, 1500);"
        "setTimeout(() => process.exit(), 2000);"
    )
    options = os.environ | {"NODE_OPTIONS": f"--require={_HASTE}"}
    done = subprocess.run(["node", script], env=options, capture_output=True, text=True, check=True)
    lines = done.stdout.split()
    assert lines[-1] == "other"
    assert (len(lines) == 2) is is_hasty
