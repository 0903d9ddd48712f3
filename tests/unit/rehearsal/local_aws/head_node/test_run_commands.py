"""Commands of a rehearsal's head node: those of the provider and of trainctl, and nothing else."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from ops.account.head_node import as_user
from ops.registry import script as registry_script
from rehearsal.local_aws.head_node.agent import Agent
from rehearsal.local_aws.head_node.run_commands import SCRIPTS, run
from training_cluster.paths import TRAINING

ROOT = "PATH=$PATH:/opt/slurm/bin "


def execute(script: str, environment: dict[str, str]) -> tuple[int, str, str]:
    outcome = run(script, environment, agent=Agent())
    return outcome.code, outcome.stdout, outcome.stderr


def environment(shared: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TRAINING_SHARED": str(shared)}


def test_shared_folder_is_the_nodes_mount(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "job-7.log").write_text(f"run folder {tmp_path}/runs/gpt2\n")
    code, said, _ = execute(as_user("cat", "/fsx/runs/job-7.log"), environment(tmp_path))
    assert (code, said) == (0, "run folder /fsx/runs/gpt2\n")


def test_efs_is_the_folder_that_stands_for_it(tmp_path: Path) -> None:
    shell = environment(tmp_path / "shared") | {"TRAINING_EFS": str(tmp_path / "efs")}
    (tmp_path / "efs").mkdir()
    code, said, _ = execute(as_user("stat", "--format=%F %n", "/efs"), shell)
    assert (code, said) == (0, "directory /efs\n")
    code, _, said = execute(as_user("ls", "/efs"), environment(tmp_path))
    assert code != 0
    assert "/efs" in said


def test_settings_reach_the_program(tmp_path: Path) -> None:
    program = tmp_path / "sbatch"
    program.write_text('#!/bin/sh\necho "$MAX_STEPS $RUN_NAME $*"\n[ -d "${2%/training/*}" ]\n')
    program.chmod(0o755)
    shell = environment(tmp_path) | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    asked = as_user("env", "MAX_STEPS=3", "RUN_NAME=a b", "sbatch", "--nodes=2", "/fsx/training/job.slurm")
    assert execute(asked, shell)[:2] == (0, "3 a b --nodes=2 /fsx/training/job.slurm\n")


@pytest.mark.parametrize(
    "script",
    [
        "touch {target}",
        ROOT + "touch {target}",
        ROOT + "squeue; touch {target}",
        ROOT + "sinfo $(touch {target})",
        ROOT + "sbatch {target}",
        as_user("touch", "{target}"),
        as_user("env", "A=b", "touch", "{target}"),
        as_user("env", "-i", "touch", "{target}"),
        as_user("python3", "-c", "open('{target}', 'w')"),
        as_user("cat") + " /dev/null; touch {target}",
        as_user("cat") + " 'not closed",
        "",
    ],
)
def test_nothing_else_is_run(script: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    code, _, said = execute(script.replace("{target}", str(target)), environment(tmp_path))
    assert code != 0
    assert said
    assert not target.exists()


def test_own_script_is_run_word_for_word(tmp_path: Path) -> None:
    script = (SCRIPTS / "measure-storage.sh").read_text()
    code, said, _ = execute(as_user("bash", "-c", script, "x", "5", "/fsx"), environment(tmp_path))
    assert code == 0
    assert re.fullmatch(r"/fsx: +\d+ +\d+\n", said)
    changed = as_user("bash", "-c", script + "\ntrue\n", "x", "5", "/fsx")
    assert execute(changed, environment(tmp_path))[0] == 126


def test_registries_of_a_person_are_not_touched(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "efs" / "home" / ".config" / "enroot" / ".credentials"
    own = tmp_path / "person" / ".config" / "enroot" / ".credentials"
    for file in (kept, own):
        file.parent.mkdir(parents=True)
        file.write_text("machine ghcr.io login me password secret\n")
    (tmp_path / "training").mkdir()
    shutil.copy(TRAINING / "registry.sh", tmp_path / "training")
    folders = {"TRAINING_EFS": str(tmp_path / "efs"), "HOME": str(tmp_path / "person")}

    def typed(*words: str) -> tuple[int, str, str]:
        return execute(as_user(*shlex.split(registry_script(words))), environment(tmp_path) | folders)

    assert typed("list") == (0, "ghcr.io me\n", "")
    assert typed("logout", "ghcr.io") == (0, "registry: removed the entries of ghcr.io\n", "")
    assert typed("list") == (0, "", "")
    code, _, said = typed("logout", "https://ghcr.io")
    assert (code, "is not a host name of a registry" in said) == (1, True)
    assert "secret" in own.read_text()


def played(folder: Path, script: str) -> dict[str, str]:
    """A head node whose squeue is this script."""
    program = folder / "squeue"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return environment(folder) | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_failed_command_has_the_agents_line(tmp_path: Path) -> None:
    code, said, errors = execute(as_user("squeue"), played(tmp_path, "echo out; echo bad >&2; exit 3"))
    assert (code, said, errors) == (3, "out\n", "bad\nfailed to run commands: exit status 3")
