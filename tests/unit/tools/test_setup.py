"""tools/setup.sh and the Makefile on bare machines and in odd folders: one message, and nothing half made."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

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


@pytest.mark.parametrize("character", sorted(UNWRITABLE))
def test_a_folder_that_slurm_cannot_write_down_is_refused_before_anything_is_made(
    tmp_path: Path, character: str
) -> None:
    machine = _machine(tmp_path, f"my{character}project")
    refused = machine.set_up()
    assert refused.returncode == 1
    assert "contains a space or a #" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert machine.made() == []


def test_a_full_disk_is_told_before_anything_is_made(machine: Machine) -> None:
    machine.program("df", f"echo Avail; echo {2 << 30}")
    refused = machine.set_up()
    assert refused.returncode == 1
    assert "2 GiB are free, and set-up requires 4" in refused.stderr
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


@pytest.mark.parametrize(("index", "warned"), [({}, True), ({"PIP_EXTRA_INDEX_URL": "https://cpu"}, False)])
def test_too_little_room_for_cuda_is_told(machine: Machine, index: dict[str, str], *, warned: bool) -> None:
    machine.program("df", f"echo Avail; echo {5 << 30}")
    assert ("see TORCH_INDEX" in machine.set_up(**index).stderr) is warned


def test_what_the_tests_call_comes_from_the_distribution_before_anything_else(
    machine: Machine, tmp_path: Path
) -> None:
    assert machine.set_up().returncode == 1
    update, install = (tmp_path / "apt").read_text().splitlines()
    assert update == "update"
    assert {"curl", "slurm-client", "mmdebstrap"} <= set(install.split())
    assert machine.made() == [".cache"]


def test_an_activated_environment_hides_no_aws_cli_v2(machine: Machine) -> None:
    script = machine.folder / "tools" / "setup.sh"
    made_before = "check_python install_programs make_venv make_node_modules unpack_prometheus unpack_jsii"
    stubs = "".join(f"{each}() {{ :; }}\n" for each in made_before.split())
    script.write_text(f"{script.read_text().removesuffix('main' + chr(10))}{stubs}main\n")
    programs = machine.folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("aws", "aws_completer", "python"):
        (programs / name).touch()
    done = machine.set_up()
    assert "setup: ready" in done.stderr
    assert [each.name for each in programs.iterdir()] == ["python"]


@pytest.mark.slow
def test_a_folder_that_got_a_blank_after_set_up_can_be_cleaned(tmp_path: Path) -> None:
    folder = tmp_path / "my project"
    for name in ("rehearsal", "constructs", "cluster_configs", "tools"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("Makefile", "requirements-pcluster.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(["make", "clean"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing was running.\n", "")
    assert not (folder / ".venv").is_symlink()


def test_a_rehearsal_in_a_folder_with_a_blank_is_refused_before_it_is_made(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path / "my folder")
    with pytest.raises(RehearsalError, match="contains a space or a #"), workspace.locked():
        pytest.fail("it is held")
    assert not workspace.root.exists()


def test_what_is_in_the_way_of_a_rehearsal_is_told_with_the_command_that_ends_it(tmp_path: Path) -> None:
    workspace = Workspace(root=tmp_path)
    with (
        subprocess.Popen(["sleep", "60"], env=dict([workspace.marker])) as left,
        pytest.raises(
            RehearsalError,
            match=r"End it first: trainctl rehearse --stop --folder",
        ),
    ):
        try:
            run_alone(workspace, lambda: pytest.fail("it runs"))
        finally:
            left.kill()
    with workspace.locked(), pytest.raises(RehearsalError, match="Wait for it, or end it: make stop"):
        run_alone(workspace, lambda: pytest.fail("it runs"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help", "FAMLY=m6i"], "FAMLY: not a variable of this Makefile. Allowed: PYTHON FAMILY"),
        (["help", "family=m6i"], "family: not a variable"),
        (["site", "SERVE=yes"], "SERVE=yes: not allowed. Type: make site SERVE=1"),
        (["rehearse", "KEEP=yes"], "KEEP=yes: not allowed. Type: make rehearse KEEP=1"),
        (["rehearse", "CONTAINER=0"], "CONTAINER=0: not allowed. Type: make rehearse CONTAINER=1"),
        (["rehearse", "USERS=3"], "USERS=3: not allowed. Type: make rehearse USERS=2"),
        (["faults", "ALL=yes"], "ALL=yes: not allowed. Type: make faults ALL=1"),
        (["layer"], ".venv does not exist; nothing was changed.\n  type: make setup"),
        (["lock"], ".venv does not exist; nothing was changed.\n  type: make setup"),
    ],
)
def test_make_refuses_what_it_would_ignore_or_cannot_do(
    tmp_path: Path, words: list[str], message: str
) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    set_up = tmp_path / "tools" / "setup.sh"
    set_up.write_text("#!/bin/sh\ntouch set-up\n")
    set_up.chmod(0o755)

    done = subprocess.run(["make", *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "set-up").exists(), "refused before set-up"


def test_make_takes_every_variable_that_it_has_a_default_for(tmp_path: Path) -> None:
    names = re.findall(r"^([A-Z_]+) \?=", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    shutil.copy(ROOT / "Makefile", tmp_path)

    done = subprocess.run(
        ["make", "help", *(f"{name}=a b" for name in names)],
        cwd=tmp_path,
        env=os.environ | {"MAKEFLAGS": ""},  # of `make -j2 check test-fast`
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(names) > 10
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("version", "said"),
    [("3, 10", "is missing or older than 3.11"), ("3, 15", "is 3.15 or newer")],
)
def test_a_python_that_the_packages_do_not_take_is_refused_before_anything_is_made(
    machine: Machine, tmp_path: Path, version: str, said: str
) -> None:
    python = tmp_path / "python"
    # It runs the check with another version of its own.
    change = f"import sys; sys.version_info = ({version}, 0, 'final', 0)\n"
    python.write_text(f'#!/bin/bash\nexec {sys.executable} -c "{change}$2"\n')
    python.chmod(0o755)

    refused = machine.set_up(PYTHON=str(python))

    assert refused.returncode == 1
    assert said in refused.stderr
    assert "type: make setup PYTHON=" in refused.stderr
    assert machine.made() == []


def test_the_library_has_an_event_loop_from_python_3_14_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    script = (ROOT / "tools" / "setup.sh").read_text().removesuffix("main\n")
    (tmp_path / "tools" / "setup.sh").write_text(f"{script}make_event_loop venv\n")
    venv.create(tmp_path / "venv.new", with_pip=False)
    subprocess.run(["bash", "tools/setup.sh"], cwd=tmp_path, check=True)
    (line,) = next((tmp_path / "venv.new").rglob("event_loop.pth")).read_text().splitlines()
    assert line.startswith("import ")  # site executes only such lines
    made: list[str] = []
    loops = SimpleNamespace(set_event_loop=made.append, new_event_loop=lambda: "loop")
    monkeypatch.setitem(sys.modules, "asyncio", loops)

    for version, expected in (((3, 13), []), ((3, 14), ["loop"])):
        monkeypatch.setattr(sys, "version_info", version)
        exec(line)
        assert made == expected


def test_a_set_up_that_a_signal_ends_leaves_nothing_that_writes_into_the_next_one(
    machine: Machine, tmp_path: Path
) -> None:
    script = machine.folder / "tools" / "setup.sh"
    stubs = "".join(
        f"{each}() {{ :; }}\n" for each in ("check_python", "install_programs", "install_accounting")
    )
    # As pip, which removes its temporary files before it ends.
    made = (
        f"make_venv() {{ trap 'sleep 0.2; exit' TERM; echo $BASHPID >>{tmp_path}/pids; sleep 300 & wait; }}\n"
    )
    script.write_text(f"{script.read_text().removesuffix('main' + chr(10))}{stubs}{made}main\n")
    machine.program("sleep", f'exec {shutil.which("sleep")} "$@"')
    pids = tmp_path / "pids"
    set_up = machine.start()
    while not pids.exists() or len(pids.read_text().splitlines()) < 2:
        assert set_up.poll() is None
        time.sleep(0.05)
    set_up.send_signal(signal.SIGTERM)
    set_up.wait(timeout=60)

    left = _running_in(machine.folder)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert left == []


def _running_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found
