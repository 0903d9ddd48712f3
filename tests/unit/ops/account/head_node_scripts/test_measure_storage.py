"""measure-storage.sh prints the quotas of the file of users in the form of file systems."""

import os
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

SCRIPT = ROOT / "ops" / "account" / "head_node_scripts" / "measure-storage.sh"
PEOPLE = """\
alice 5001 active user nlp 100 nlp 1 - -
bob 5002 active user - - users 1 - -
carol 5003 active user - 50 users 1 - -
"""
ACCOUNTS = "nlp 6001 500 2 - -\nvision 6002 - 1 - -\nspeech 6003 70 1 - -\n"
# The formats of print_quota in Lustre 2.15.8's lfs.c: a file system with a long name has a line of its own,
# and a star marks what is exceeded.
_ROW = r'"%15s %7s%c %6s %7s %7s %7s%c %6s %7s %7s\n"'
_ROW_OF = "2048 '*' 0 104857600 - 7 ' ' 0 0 -"
LFS = rf"""printf '%s\n' "$4" >>"$CALLS"
case $4 in
  carol) printf {_ROW} /fsx {_ROW_OF} ;;
  *) echo "$5"; printf {_ROW} '' {_ROW_OF} ;;
esac"""
BRACKETS = rf"""printf '%s\n' "$4" >>"$CALLS"; printf {_ROW} /fsx '[2048]' ' ' 0 '[0]' - '[7]' ' ' 0 '[0]' -
echo 'Some errors happened when getting quota info. The data in "[]" is inaccurate.'; exit 5"""


def quotas(folder: Path, *, sudo: bool, lfs: str = LFS) -> list[str]:
    (folder / "users").write_text(PEOPLE)
    (folder / "accounts").write_text(ACCOUNTS)
    for name, script in {
        "lfs": lfs,
        "sudo": 'shift; exec "$@"' if sudo else "exit 1",
        "id": "if [[ $1 == -nG ]]; then echo carol training-users nlp; else echo carol; fi",
    }.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TRAINING_ETC": str(folder),
        "CALLS": str(folder / "calls"),
    }
    command = ["bash", str(SCRIPT), "5", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first, *found = done.stdout.splitlines()
    assert first.startswith(f"{folder}: ")
    return found


@pytest.mark.parametrize(
    ("sudo", "names"),
    [(True, ["alice", "carol", "project nlp", "project speech"]), (False, ["carol", "project nlp"])],
)
def test_only_admins_see_the_quotas_of_others(tmp_path: Path, sudo: bool, names: list[str]) -> None:
    assert quotas(tmp_path, sudo=sudo) == [
        f"quota of {name}: {104857600 * 1024} {2048 * 1024}" for name in names
    ]
    asked = (tmp_path / "calls").read_text().split()
    assert asked == [{"project nlp": "6001", "project speech": "6003"}.get(name, name) for name in names]


@pytest.mark.parametrize(
    ("lfs", "said"),
    [
        (BRACKETS, 'Some errors happened when getting quota info. The data in "[]" is inaccurate.'),
        ('echo "$4" >>"$CALLS"; echo "Permission denied." >&2; exit 1', "Permission denied."),
        ('echo "$4" >>"$CALLS"', "no answer within 5 s"),
    ],
)
def test_what_lustre_does_not_tell_is_said_once(tmp_path: Path, lfs: str, said: str) -> None:
    assert quotas(tmp_path, sudo=True, lfs=lfs) == [f"quota of alice: {said}"]
    assert (tmp_path / "calls").read_text().split() == ["alice"]
