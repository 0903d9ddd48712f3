"""Commands of a rehearsal's head node: those of the provider and of trainctl; and events of its cluster."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from ops.account.head_node import as_user
from ops.registry import script as registry_script
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.head_node.agent import Agent
from rehearsal.local_aws.head_node.events import report
from rehearsal.local_aws.head_node.run_commands import SCRIPTS, run
from training_cluster.paths import TRAINING

ROOT = "PATH=$PATH:/opt/slurm/bin "


def execute(script: str, environment: dict[str, str]) -> tuple[int, str, str]:
    outcome = run(script, environment, agent=Agent())
    return outcome.code, outcome.stdout, outcome.stderr


def environment(shared: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TRAINING_SHARED": str(shared)}


def test_nothing_else_is_run(tmp_path: Path) -> None:
    for script in (
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
    ):
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


def test_registries_of_a_person_are_not_touched(tmp_path: Path) -> None:
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


_PROGRAM = """
import os, sys
print(*sys.argv[1:], os.environ["AWS_ENDPOINT_URL"])
if sys.argv[2] == "update":
    sys.exit("Slurm refuses this")
"""


def test_program_learns_the_event_and_gives_reasons(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    assert report(address, "training", "create") == "", "it is not kept"
    address.head_node_program.write_text(json.dumps([sys.executable, "-c", _PROGRAM]))
    assert report(address, "training", "create") == ""
    assert "training create https://localhost:4566\n" in address.head_node_log.read_text()
    assert report(address, "training", "update") == "Slurm refuses this"
