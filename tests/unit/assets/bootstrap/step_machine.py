"""A machine for steps: a folder that is its disk, and stubs of programs that write down their calls."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from training_cluster.catalog.versions import render_versions
from training_cluster.paths import ASSETS

# Programs that steps use as they are. What installs, or asks the machine, is a stub.
REAL = """
awk basename bash cat chmod cp cut date dirname env find git grep head hostname id install ln make mkdir
mktemp mv nproc python3 readlink realpath rm sed sh sha256sum sleep sort stat tail tee timeout touch tr
""".split()
KERNEL = "6.8.0-1021-aws"
QUESTIONS = ("uname", "modinfo", "dpkg-query", "rpm", "lspci", "python3")
APT = "apt-get -o DPkg::Lock::Timeout=60 -qq"
# What would change the machine that runs the tests. A test that needs one stubs it.
REFUSED = "apt-get apt-mark dnf dpkg systemctl".split()


class Machine:
    """A node, or with `venv` a machine that builds an image; `calls` are its stubs', as `name argument`.

    An image's machine has REAL programs and stubs, and no others; a node those of this machine, too.
    """

    def __init__(self, folder: Path, *, venv: Path | None = None) -> None:
        self.folder, self.root, self.bin, self.etc = folder, folder / "root", folder / "bin", folder / "etc"
        self.opt = self.root / "opt" / "training-cluster"
        self.bundle = folder / "bundles" / ("a" * 64)
        self._calls = folder / "calls"
        for made in (self.root / "etc", self.bin, self.opt, self.bundle, self.etc / "partitions"):
            made.mkdir(parents=True)
        (self.bundle / "bootstrap").symlink_to(ASSETS / "bootstrap")
        path = f"{self.bin}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        self.environment = {
            "PATH": str(self.bin) if venv else path,
            "HOME": str(folder),
            "BUNDLE": str(self.bundle),
            "TRAINING_ROOT": str(self.root),
            "TRAINING_OPT": str(self.opt),
            "TRAINING_ETC": str(self.etc),
            "TRAINING_STATE": str(self.root / "var/lib/training-cluster"),
            "TRAINING_SHARED": str(self.root / "fsx"),
            "TRAINING_EFS": str(self.root / "efs"),
            "NODE_TYPE": "Image" if venv else "ComputeFleet",
            "RECIPE": "cpu",
            "PARTITION": "",
            "OS": "ubuntu2404",
            "ROOT": str(self.root),
        }
        for line in render_versions().splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            self.environment[name] = value.strip("'")
        if venv:
            self._build_images(venv)
            return
        for name in REFUSED:
            why = f"{name}: a test must not change this machine. Without .cache/prometheus, type: make setup"
            self.program(name, f"echo '{why}' >&2; exit 1")

    def _build_images(self, venv: Path) -> None:
        (self.bundle / "training").symlink_to(ASSETS / "training")
        self.write("etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n")
        self.write("proc/version", "Linux (x86_64-linux-gnu-gcc-13 13.2)\n")
        for name in REAL:
            if path := shutil.which(name, path="/usr/bin:/bin"):
                (self.bin / name).symlink_to(path)
        self.program("uname", f"echo {KERNEL}")
        # The installer is the test's own user.
        for name in ("useradd", "chown", "pkill"):
            self.program(name)
        self.program("setpriv", 'while [[ $1 == --* ]]; do shift; done\nexec "$@"')
        # `python3 -I -m venv` copies an environment, which the first such call of all tests makes: ensurepip
        # takes seconds. All else is the real Python.
        python = (self.bin / "python3").resolve()
        make = f'"{python}" -m venv "{venv}.$$" && mv -T "{venv}.$$" "{venv}"'
        copy = f'[[ -d "{venv}" ]] || {{ {make}; }} || [[ -d "{venv}" ]] || exit\n'
        copy += f'mkdir -p "${{@: -1}}"; exec cp -a "{venv}/." "${{@: -1}}"'
        self.program("python3", f'if [[ "$1 $2 $3" == "-I -m venv" ]]; then {copy}; fi\nexec "{python}" "$@"')
        # pip finds our wheels, and nothing else.
        self.environment |= {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.folder / "wheels"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def program(self, name: str, script: str = "", *, at: Path | None = None) -> Path:
        """Write a stub that logs its call, then runs a script; a name with a / is a path below the root."""
        path = at or (self.root if "/" in name else self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        noted = f'call="{path.name} $*"; echo "${{call//$NEWLINE/ }}" >>"{self._calls}"'
        path.write_text(f"#!/bin/bash\nNEWLINE=$'\\n'\n{noted}\n{script}\n")
        path.chmod(0o755)
        return path

    def write(self, path: str, text: str) -> Path:
        """Write a file of the machine's disk."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def serve(self, content: str) -> str:
        """Let curl fetch this content; return its SHA-256."""
        source = self.folder / "served"
        source.write_text(content)
        self.program("curl", f'while [[ $1 != --output ]]; do shift; done; cat "{source}" >"$2"')
        return hashlib.sha256(content.encode()).hexdigest()

    def wheel(self, name: str, version: str, files: dict[str, str], *, requires: str = "") -> str:
        """Make a wheel that pip finds, and that may require another; return its SHA-256."""
        word = name.replace("-", "_")
        path = self.folder / "wheels" / f"{word}-{version}-py3-none-any.whl"
        path.parent.mkdir(exist_ok=True)
        info = f"{word}-{version}.dist-info"
        whole = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            + (f"Requires-Dist: {requires}\n" if requires else ""),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = [f"{file},sha256={_digest(text)},{len(text)}" for file, text in whole.items()]
        whole[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
        with zipfile.ZipFile(path, "w") as archive:
            for file, text in whole.items():
                archive.writestr(file, text)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def publish(
        self, index: str, name: str, version: str, files: dict[str, str], *, requires: str = ""
    ) -> str:
        """Make a wheel the only one of its name in an index of pip; return the index's address."""
        self.wheel(name, version, files, requires=requires)
        wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        folder = self.folder / index / name
        folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "wheels" / wheel).rename(folder / wheel)
        (folder / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
        return f"file://{self.folder / index}"

    def repository(self, files: dict[str, str]) -> tuple[str, str]:
        """Make a git repository; return its URL and its commit."""
        folder = self.folder / "repository"
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder)]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
            subprocess.run([*git, *arguments], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        return str(folder), done.stdout.strip()

    def in_job(self, code: str, workload: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run shell code after environment.sh, as a job's scripts do: with a node's facts, without pins."""
        pins = re.findall(r"^export (\w+)=", render_versions(), re.MULTILINE)
        node = {name: value for name, value in self.environment.items() if name not in pins}
        node |= {"NODE_TYPE": "ComputeFleet", "TRAINING_VENVS": f"{self.folder}/fsx/venvs"}
        training = f"{self.bundle}/training"
        source = f'source "$2/environment.sh"; {code}'
        command = ["bash", "-euc", source, "_", f"{training}/{workload}", training]
        return subprocess.run(command, env=node | environment, capture_output=True, text=True)

    def run(self, step: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a step by the beginning of its name, as the runner does."""
        (path,) = (self.bundle / "bootstrap" / "steps").glob(f"{step}-*.sh")
        return subprocess.run(
            ["bash", str(path)],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def does(self, step: str, **environment: str) -> str:
        """Run a step that has to succeed; return its messages."""
        done = self.run(step, **environment)
        succeeds(done)
        return done.stderr

    def called(self) -> list[str]:
        """Return all calls of the stubs."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def calls(self) -> list[str]:
        """Return the stubs' calls since the last call of this, without those that only read."""
        lines = self.called()
        self._calls.unlink(missing_ok=True)
        return [line for line in lines if line.split()[0] not in QUESTIONS]

    def files(self) -> dict[str, object]:
        """Return the size and last change of every file of the machine, and the target of every link."""
        found = [path for path in self.root.rglob("*") if path.is_symlink() or path.is_file()]
        stats = {path: path.lstat() for path in found}
        return {
            str(path): path.readlink()
            if path.is_symlink()
            else (stats[path].st_size, stats[path].st_mtime_ns)
            for path in found
        }


def fails(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Assert that a step failed, with these words in its last line."""
    assert done.returncode != 0, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in last, done.stderr


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that a step succeeded, or show its output."""
    assert done.returncode == 0, done.stderr


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
