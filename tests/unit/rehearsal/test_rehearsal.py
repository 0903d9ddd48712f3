"""A rehearsal's commands, its region, the variables of its jobs, and what it reads of their metrics."""

import json
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from rehearsal import commands
from rehearsal.bootstrap import job_variables
from rehearsal.keep_running import leave_running
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.report import read_checked
from rehearsal.run import INTERRUPTS, region_of
from rehearsal.workspace import Workspace
from training_cluster.catalog.families import family_names, load_family
from training_cluster.problems import ConfigurationError


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (None, 0, ""),
        (RehearsalError("no Slurm"), 1, "\nRehearsal: no Slurm\n"),
        (ConfigurationError("family=x"), 2, "\nRehearsal: family=x\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted: everything that was started is stopped.\n"),
    ],
)
def test_failure_is_one_message_and_a_code(
    error: BaseException | None, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(workspace: Workspace, _: Narrator) -> None:
        assert workspace.root == tmp_path
        if error:
            raise error

    assert commands.run_command(work, tmp_path) == code
    assert capsys.readouterr().err == message


def test_a_folder_removed_meanwhile_is_named(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path / "rehearsal")
    with pytest.raises(RehearsalError, match=f"cause:  {workspace.root} was removed"), workspace.locked():
        shutil.rmtree(workspace.root)
        workspace.env_file.touch()


@pytest.mark.root
@pytest.mark.parametrize(("options", "cause"), [("ro", "read-only"), ("size=1m", "is full")])
def test_a_full_or_readonly_disk_is_named(
    options: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path], check=True)
    try:

        def work(*_: object) -> None:
            (tmp_path / "x").write_bytes(bytes(2**21))

        assert commands.run_command(work, tmp_path) == 1
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert cause in capsys.readouterr().err


@pytest.mark.parametrize("number", INTERRUPTS)
def test_ending_signal_interrupts_the_work(number: signal.Signals, tmp_path: Path) -> None:
    former = signal.signal(number, signal.SIG_IGN)
    try:
        assert commands.run_command(lambda *_: signal.raise_signal(number), tmp_path) == 130
        assert signal.getsignal(number) is signal.SIG_IGN, "as it was before"
    finally:
        signal.signal(number, former)


def test_jobs_reach_the_local_aws_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "a-persons")
    workspace = Workspace(root=tmp_path)
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIAEXAMPLE")
    slurm = LocalSlurm(root=tmp_path, partitions=(), marker=("LOCAL_SLURM_TEST", "environment"))
    variables = job_variables(workspace, address)
    assert "a-persons" not in {*slurm.client_env().values(), *variables.values()}
    assert (variables["AWS_ENDPOINT_URL"], variables["AWS_ENDPOINT_URL_S3"]) == (address.url, address.s3_url)
    assert variables["AWS_ACCESS_KEY_ID"] == "AKIAEXAMPLE"
    assert variables["TMPDIR"].startswith(str(tmp_path / "node")), "a node's own, not that of AWS's clients"

    leave_running(workspace=workspace, address=address, slurm=slurm, steps=(), narrator=Narrator())
    assert "AWS_ACCESS_KEY_ID=AKIAEXAMPLE" in workspace.env_file.read_text()
    assert stat.S_IMODE(workspace.env_file.stat().st_mode) == 0o600, "its owner's alone"


def test_a_job_has_to_lower_its_loss(tmp_path: Path) -> None:
    """A row of a validation is no step."""

    def last_loss(*losses: float | None) -> float | None:
        steps = [
            {"step": step, "loss": loss, "world_size": 2, "tokens_per_s": 1.0}
            for step, loss in enumerate(losses, start=1)
        ]
        rows = [*steps, {"step": 2, "val_loss": 2.5, "val_s": 0.2}]
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_checked(tmp_path, world_size=2).summary.last_loss

    assert last_loss(3.0, 2.0) == 2.0
    with pytest.raises(RehearsalError, match=r"The loss did not fall: 3\.0 at first, None at last"):
        last_loss(3.0, None)
    with pytest.raises(RehearsalError, match="The job made no step"):
        last_loss()


def test_each_family_is_rehearsed_in_an_available_region() -> None:
    regions = {name: region_of(load_family(name)) for name in family_names()}
    elsewhere = {name: region for name, region in regions.items() if region != "us-east-1"}
    assert elsewhere == {"hpc7a": "us-east-2", "p5e": "us-east-2", "trn2": "us-east-2"}
