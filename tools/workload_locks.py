"""`make lock`, of workloads: requirements.lock beside each requirements.txt, all packages with their hashes.

For each Python of nodes, pip resolves the packages, mostly without downloads, from PyPI alone, whose torch is
the build for CUDA. environment.sh reads the locks; where torch is another build (rehearsals, V100), it leaves
torch and its CUDA libraries unchecked. Names of workloads as arguments: it writes only theirs.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name

from training_cluster.paths import ROOT, TRAINING

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""Versions that environment.sh takes: nodes have 3.10 or 3.12."""
LOCK = "requirements.lock"
GLIBC_MINOR = 34
"""Minor version of Amazon Linux 2023's glibc 2.34, the oldest of all nodes."""
_OTHER_SOURCES = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT")
_TIMEOUT_S = 600


class LockError(Exception):
    """A lock that cannot be made. The message has the reason and the remedy."""


@dataclass(frozen=True, order=True, kw_only=True)
class Locked:
    """One file of an index that pip would install."""

    name: str
    version: str
    sha256: str


def requirement_files() -> list[Path]:
    """List the requirements.txt of every workload and of the template of new ones."""
    return [*sorted(TRAINING.glob("*/requirements.txt")), ROOT / "ops/workload_template/requirements.txt"]


def pythons_of(requirements: str) -> tuple[str, ...]:
    """Return the Python versions of a requirements.txt: all, or those that `# Pythons:` names."""
    named = re.search(r"^# Pythons: (.+)$", requirements, re.MULTILINE)
    return tuple(named[1].split()) if named else PYTHONS


def content_sum(requirements: str) -> str:
    """Return the SHA-256 of the requirements without their comments, as environment.sh calculates it."""
    kept = [line for line in requirements.splitlines() if not line.startswith("#")]
    return hashlib.sha256("".join(f"{line}\n" for line in kept).encode()).hexdigest()


def render(requirements: str, resolved: Mapping[str, list[Locked]]) -> str:
    """Render the lock of a requirements.txt: one line a package, with a marker where not all Pythons take it.

    Args:
        requirements: text of the requirements.txt.
        resolved: packages by version of Python.
    """
    pythons: dict[tuple[str, str], list[str]] = defaultdict(list)
    hashes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for python, packages in resolved.items():
        for each in packages:
            pythons[each.name, each.version].append(python)
            hashes[each.name, each.version].add(each.sha256)
    lines = [
        '# Made by "make lock" from requirements.txt: for Linux on x86_64, from PyPI.',
        f"# Pythons: {' '.join(resolved)}",
        f"# Of: {content_sum(requirements)}",
    ]
    for (name, version), takers in sorted(pythons.items()):
        marker = "" if takers == list(resolved) else f' ; python_version in "{" ".join(takers)}"'
        sums = "".join(f" --hash=sha256:{each}" for each in sorted(hashes[name, version]))
        lines.append(f"{name}=={version}{marker}{sums}")
    return "\n".join([*lines[:3], *_kinds(requirements), *lines[3:]]) + "\n"


def _kinds(requirements: str) -> list[str]:
    """Return pip's options, also for the lock: wheels only, except for `# Source archives:`."""
    sources = re.search(r"^# Source archives: (.+)$", requirements, re.MULTILINE)
    return [
        "--only-binary :all:",
        *(f"--no-binary {each}" for each in (sources[1].split() if sources else ())),
    ]


def resolve(file: Path, python: str) -> list[Locked]:
    """Ask pip which wheels it would install for one Python.

    Raises:
        LockError: this Python is not installed, or pip finds no compatible wheels.
    """
    interpreter = shutil.which(f"python{python}")
    if (
        not interpreter
        or subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode
    ):
        raise LockError(
            f"python{python} is not on PATH, and the workloads' locks are for {', '.join(PYTHONS)}.\n"
            f"  Install it, for example: pyenv install {python} && pyenv global 3.11 {python}"
        )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--dry-run", "--quiet"]
        command += ["--ignore-installed", "--use-feature", "fast-deps"]
        command += [word for option in _kinds(file.read_text("utf-8")) for word in option.split()]
        environment = {name: value for name, value in os.environ.items() if name not in _OTHER_SOURCES}
        done = subprocess.run(
            [*command, "--report", str(report), "--requirement", str(file)],
            env=environment | {"PIP_CONFIG_FILE": os.devnull},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise LockError(f"{file}: pip finds no wheels for Python {python}:\n{done.stderr.strip()}")
        return list(_locked(json.loads(report.read_text(encoding="utf-8"))))


def _locked(report: Mapping[str, list[dict[str, dict[str, object]]]]) -> Iterator[Locked]:
    for each in report["install"]:
        name, version = str(each["metadata"]["name"]), str(each["metadata"]["version"])
        found = re.search(r"sha256['=: ]+([0-9a-f]{64})", str(each["download_info"].get("archive_info")))
        if not found:
            raise LockError(f"the index gives no SHA-256 of {name} {version}")
        url = str(each["download_info"]["url"])
        minors = [int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", url)]
        if minors and min(minors) > GLIBC_MINOR:
            raise LockError(
                f"{name} {version}: its wheel needs glibc 2.{min(minors)}, and nodes have 2.{GLIBC_MINOR}"
            )
        yield Locked(name=canonicalize_name(name), version=version, sha256=found[1])


def main(names: Collection[str]) -> int:
    """Write the locks of the named workloads, or all; return the exit status."""
    files = [file for file in requirement_files() if not names or file.parent.name in names]
    if unknown := set(names) - {file.parent.name for file in files}:
        allowed = ", ".join(file.parent.name for file in requirement_files())
        print(f"make lock: no workload {', '.join(sorted(unknown))}. Allowed: {allowed}", file=sys.stderr)
        return 2
    try:
        for file in files:
            pythons = pythons_of(file.read_text("utf-8"))
            with ThreadPoolExecutor(len(pythons)) as threads:
                found = threads.map(partial(resolve, file), pythons)
                resolved = dict(zip(pythons, found, strict=True))
            file.with_name(LOCK).write_text(render(file.read_text("utf-8"), resolved), encoding="utf-8")
            print(f"wrote {file.with_name(LOCK).relative_to(ROOT)}", file=sys.stderr)
    except LockError as error:
        print(f"make lock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
