"""tools/setup.sh and the Makefile on bare machines and in odd folders: one message, and nothing half made."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rehearsal.commands import run_alone
from rehearsal.local_slurm.layout import UNWRITABLE
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace
from training_cluster.paths import ROOT

# Of a minimal Debian; Slurm, munge, curl, sudo and mmdebstrap are none of them.
ESSENTIAL = "bash dirname mkdir df tail cat sha256sum env rm grep sed flock"


class Machine:
    """A folder with the project's set-up in it, and a PATH with few programs on it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self._programs = folder, programs
        shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "Makefile", folder)
        programs.mkdir()
        for name in ESSENTIAL.split():
            (programs / name).symlink_to(str(shutil.which(name)))

    def program(self, name: str, script: str) -> None:
        (self._programs / name).unlink(missing_ok=True)  # it may be a link to the machine's own
        (self._programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (self._programs / name).chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run set-up, which ends at the distribution's packages, since there are none."""
        process = self.start(**environment)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(shutil.which("bash")), "tools/setup.sh"],
            cwd=self.folder,
            env={"PATH": str(self._programs), "PYTHON": sys.executable} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def made(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name not in ("tools", "Makefile"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return _machine(tmp_path, "project")


def _machine(tmp_path: Path, name: str) -> Machine:
    folder = tmp_path / name
    folder.mkdir()
    machine = Machine(folder, tmp_path / "bin")
    machine.program("id", "echo 0")
    machine.program("apt-get", f'echo "$*" >>"{tmp_path}/apt"; [[ $1 == update ]]')
    return machine


def _python(folder: Path, version: str) -> str:
    """Make a Python that runs the check with another version of its own."""
    change = f"import sys; sys.version_info = ({version}, 0, 'final', 0)\n"
    (folder / "python").write_text(f'#!/bin/bash\nexec {sys.executable} -c "{change}$2"\n')
    (folder / "python").chmod(0o755)
    return str(folder / "python")


@pytest.mark.parametrize(
    ("name", "free_gib", "version", "message"),
    [
        *((f"my{character}project", 9, "", "contains a space or a #") for character in sorted(UNWRITABLE)),
        ("project", 2, "", "2 GiB are free, and set-up requires 4"),
        ("project", 9, "3, 10", "is missing or older than 3.11"),
        ("project", 9, "3, 15", "is 3.15 or newer"),
    ],
)
def test_machine_is_refused_before_anything_is_made(
    tmp_path: Path, name: str, free_gib: int, version: str, message: str
) -> None:
    machine = _machine(tmp_path, name)
    machine.program("df", f"echo Avail; echo {free_gib << 30}")
    refused = machine.set_up(**({"PYTHON": _python(tmp_path, version)} if version else {}))
    assert refused.returncode == 1
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
    assert machine.made() == []


def test_a_second_set_up_waits_for_the_first(machine: Machine) -> None:
    (machine.folder / ".venv.new").mkdir()
    with (machine.folder / "tools" / "setup.sh").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = machine.start()
        assert second.stderr
        assert "another set-up is running in this folder: waiting" in second.stderr.readline()
        assert machine.made() == [".venv.new"]
        fcntl.flock(lock, fcntl.LOCK_UN)
        second.communicate(timeout=60)
    assert ".venv.new" not in machine.made()


def test_activated_environment_hides_no_aws_cli(machine: Machine) -> None:
    script = machine.folder / "tools" / "setup.sh"
    made_before = "check_python install_programs make_venv make_node_modules unpack_services unpack_jsii"
    stubs = "".join(f"{each}() {{ :; }}\n" for each in made_before.split())
    script.write_text(f"{script.read_text().removesuffix('main' + chr(10))}{stubs}main\n")
    programs = machine.folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("aws", "aws_completer", "python"):
        (programs / name).touch()
    done = machine.set_up()
    assert "setup: ready" in done.stderr
    assert [each.name for each in programs.iterdir()] == ["python"]


def test_rehearsal_in_a_folder_with_blank_is_refused(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path / "my folder")
    with pytest.raises(RehearsalError, match="contains a space or a #"), workspace.locked():
        pytest.fail("it is held")
    assert not workspace.root.exists()


def test_rehearsal_names_what_is_in_its_way(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path)
    with (
        subprocess.Popen(["sleep", "60"], env=dict([workspace.marker])) as left,
        pytest.raises(RehearsalError, match=r"End it first: trainctl rehearse --stop --folder"),
    ):
        try:
            run_alone(workspace, lambda: pytest.fail("it runs"))
        finally:
            left.kill()
    with workspace.locked(), pytest.raises(RehearsalError, match="Wait for it, or end it: make stop"):
        run_alone(workspace, lambda: pytest.fail("it runs"))


def test_make_refuses_what_it_would_ignore(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    set_up = tmp_path / "tools" / "setup.sh"
    set_up.write_text("#!/bin/sh\ntouch set-up\n")
    set_up.chmod(0o755)
    for words, message in {
        "help FAMLY=m6i": "FAMLY: not a variable of this Makefile. Allowed: PYTHON FAMILY",
        "help family=m6i": "family: not a variable",
        "site SERVE=yes": "SERVE=yes: not allowed. Type: make site SERVE=1",
        "rehearse KEEP=yes": "KEEP=yes: not allowed. Type: make rehearse KEEP=1",
        "rehearse CONTAINER=0": "CONTAINER=0: not allowed. Type: make rehearse CONTAINER=1",
        "rehearse USERS=3": "USERS=3: not allowed. Type: make rehearse USERS=2",
        "faults ALL=yes": "ALL=yes: not allowed. Type: make faults ALL=1",
        "layer": ".venv does not exist; nothing was changed.\n  type: make setup",
        "lock": ".venv does not exist; nothing was changed.\n  type: make setup",
    }.items():
        done = subprocess.run(["make", *words.split()], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2, words
        assert message in done.stderr
        assert not (tmp_path / "set-up").exists(), "refused before set-up"


def test_a_signal_ends_all_of_set_up(machine: Machine, tmp_path: Path) -> None:
    """A pip that still ran would write into the environments that the next set-up makes."""
    script, pids = machine.folder / "tools" / "setup.sh", tmp_path / "pids"
    stubs = "".join(f"{e}() {{ :; }}\n" for e in ("check_python", "install_programs", "install_accounting"))
    # As pip, which removes its temporary files before it ends.
    made = f"make_venv() {{ trap 'sleep 0.2; exit' TERM; echo $BASHPID >>{pids}; sleep 300 & wait; }}\n"
    script.write_text(f"{script.read_text().removesuffix('main' + chr(10))}{stubs}{made}main\n")
    machine.program("sleep", f'exec {shutil.which("sleep")} "$@"')
    set_up = machine.start()
    while not pids.exists() or len(pids.read_text().splitlines()) < 2:
        assert set_up.poll() is None
        time.sleep(0.05)
    set_up.send_signal(signal.SIGTERM)
    set_up.wait(timeout=60)
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if (process / "cwd").readlink() == machine.folder:
                left.append(int(process.name))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
