"""A synth beside other work: it has ended after the block, its failure is reported, nothing of it stays."""

import os
import time
from pathlib import Path

import pytest

from rehearsal.cdk import CdkCli
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError


def _cli(folder: Path, script: str) -> CdkCli:
    """Return a CLI whose `cdk` is a shell script."""
    program = folder / "node_modules" / ".bin" / "cdk"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return CdkCli(project=folder, environment=os.environ, logs=folder, narrator=Narrator())


def test_a_synth_has_ended_when_the_work_beside_it_goes_on(tmp_path: Path) -> None:
    cli = _cli(tmp_path, 'sleep 0.3; echo "$@" > asked')
    with cli.synthesis("-c", "family=m6i", output=tmp_path / "cdk.out"):
        assert not (tmp_path / "asked").exists(), "it runs beside"
    assert "synth -c family=m6i --quiet --output" in (tmp_path / "asked").read_text()


def test_finished_stacks_are_shown_where_colours_are_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CDK CLI colours its lines if FORCE_COLOR is set, also with --no-color."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    event = "Network | 2/2 | 10:00:00 AM | CREATE_COMPLETE      | AWS::CloudFormation::Stack | Network"
    script = f'if [ "$FORCE_COLOR" ]; then printf "\\033[32m"; fi; echo "{event}"'
    _cli(tmp_path, script).run("deploy")
    assert "Network: CREATE_COMPLETE (2/2 resources)" in capsys.readouterr().out


def test_a_failed_synth_shows_the_end_of_its_log(tmp_path: Path) -> None:
    cli = _cli(tmp_path, "echo nodes=zero is not allowed; exit 1")
    with (
        pytest.raises(RehearsalError, match=r"(?s)`cdk synth` failed.*nodes=zero is not allowed"),
        cli.synthesis(output=tmp_path / "cdk.out"),
    ):
        pass


def test_a_synth_is_ended_with_the_work_beside_it(tmp_path: Path) -> None:
    cli = _cli(tmp_path, "echo $$ > pid; exec sleep 60")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), cli.synthesis(output=tmp_path / "cdk.out"):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert time.monotonic() - began < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
