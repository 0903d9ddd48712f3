"""Scripts that trainctl runs on head nodes: what they print and write, and that no user's file stops them."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

SCRIPTS = ROOT / "ops" / "account" / "head_node_scripts"
INSPECT = SCRIPTS / "inspect-head-node.sh"
BOOTSTRAP = """\
01:19:36 bootstrap: step 60-install-job-environment: done, 0 s
01:19:37 bootstrap: step 72-enable-containers: failed, optional, 1 s: no
"""
CFN_INIT = """\
2026-11-05 16:25:12,345 [INFO] -----------------------Starting build-----------------------
2026-11-05 16:26:00,000 [ERROR] Command failed
2026-11-05 16:34:42,345 [INFO] ConfigSets completed
"""


def facts(root: Path) -> dict[str, str]:
    environment = {"PATH": os.environ["PATH"], "TRAINING_ROOT": str(root)}
    command = ["bash", str(INSPECT), str(root), str(root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_the_facts_of_a_node_are_printed(tmp_path: Path) -> None:
    files = {
        "var/log/training-cluster/bootstrap.log": BOOTSTRAP,
        "var/log/cfn-init.log": CFN_INIT,
        "usr/local/lib/slurm/spank_pyxis.so": "",
        "training/job.slurm": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = facts(tmp_path)
    assert found.pop("mount-lustre") == found.pop("mount-efs") != ""
    assert found.pop("script").endswith(" -rw-r--r--")
    assert found == {
        "bootstrap": "2 lines, 1 failed steps",
        "cfn-init-begin": "2026-11-05 16:25:12",
        "cfn-init-end": "2026-11-05 16:34:42",
        "cfn-init-errors": "1",
        "pyxis": "yes",
        "pyxis-enabled": "no",
        "enroot": "no",
        "topology": "off, 0 leaves written, 0 read",
    }


def test_missing_files_of_a_node_are_no_failure(tmp_path: Path) -> None:
    found = facts(tmp_path)
    assert found["bootstrap"] == found["cfn-init"] == "unreadable"
    assert (found["script"], found["pyxis"]) == ("", "no")


LIST = SCRIPTS / "list-jobs.sh"


def listed(folder: Path, wait_s: int = 20, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run the script as trainctl does: its text is in the command line of its shell."""
    for name, script in programs.items():
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
    return subprocess.run(
        ["bash", "-c", LIST.read_text(), LIST.name, str(wait_s), folder],
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=20,
    )


def test_pipes_instead_of_files_hide_no_complaint(tmp_path: Path) -> None:
    for name, job in (("a", None), ("b", None), ("good", "17")):
        run = tmp_path / "runs" / "gpt2" / name
        run.mkdir(parents=True)
        if name == "a":
            os.mkfifo(run / "network.json")
        else:
            (run / "network.json").write_text('{"complaint": "NCCL sends over TCP"}')
        if job:
            (run / "owner").write_text(f"{job}\n")
        else:
            os.mkfifo(run / "owner")
    done = listed(tmp_path, squeue="case $* in *%A*) echo 17 ;; *) echo RUNNING ;; esac")
    assert (done.returncode, done.stdout) == (0, "RUNNING\n17 gpt2/good: NCCL sends over TCP\n"), done.stderr


@pytest.mark.slow
def test_a_hanging_file_system_hides_no_job(tmp_path: Path) -> None:
    # No signal ends it, as none ends a process that waits for Lustre: it goes on in another session.
    hangs = f"""trap '' TERM
echo $$ >>{tmp_path}/calls
if [[ -z ${{SAFE-}} ]]; then SAFE=1 setsid "$0" "$@" & wait; fi
while sleep 0.1; do :; done"""
    try:
        for _ in range(2):
            done = listed(tmp_path, 3, squeue="printf 'RUNNING\\nPENDING\\n'", grep=hangs)
            assert done.returncode == 0, done.stderr
            assert done.stdout == f"RUNNING\nPENDING\n{tmp_path}/runs: no answer within 3 s\n"
        pids = (tmp_path / "calls").read_text().split()
        assert len(pids) == 2, "one grep, with itself in another session"
    finally:
        (tmp_path / "bin" / "grep").unlink()  # the second script may still wait for the first one's grep
        for pid in (tmp_path / "calls").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


MEASURE = SCRIPTS / "measure-storage.sh"
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
    command = ["bash", str(MEASURE), "5", str(folder)]
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


PROBE = SCRIPTS / "probe-link.sh"
NAME = f"trainctl-verify-{'0' * 32}"


def probe(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", PROBE, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_file_is_written_printed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / NAME
    assert probe("print", file).stdout == ""
    assert probe("write", file, "some text").returncode == 0
    assert probe("print", file).stdout == "some text"
    assert probe("remove", file).returncode == 0
    assert not file.exists()
    assert probe("remove", file).returncode == 0, "it may be removed twice"


def test_no_other_file_is_touched(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text("precious")
    for action in ("remove", "write", "print"):
        done = probe(action, file, "x")
        assert (done.returncode, done.stdout) == (2, "")
        assert "not a file of trainctl verify" in done.stderr
    assert file.read_text() == "precious"
