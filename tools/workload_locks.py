"""`make lock`, of workloads: requirements.lock beside each requirements.txt, all packages with their hashes.

For each Python and processor architecture of nodes, uv resolves the packages from PyPI alone, whose torch is
the build for CUDA. It requires neither that Python nor such a machine, and downloads little but metadata.
environment.sh reads the locks; where torch is another build (rehearsals, V100), it leaves torch and its CUDA
libraries unchecked. Names of workloads as arguments: it writes only theirs.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from training_cluster.paths import ROOT, TRAINING

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""Versions that environment.sh takes: nodes have 3.10 or 3.12."""
MACHINES = ("x86_64", "aarch64")
"""Processor architectures of nodes, as Python's platform.machine() and bash's HOSTTYPE name them."""
LOCK = "requirements.lock"
GLIBC_MINOR = 34
"""Minor version of Amazon Linux 2023's glibc 2.34, the oldest of all nodes."""
_OTHER_SOURCES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONSTRAINT", "UV_OVERRIDE")
_TIMEOUT_S = 600


class LockError(Exception):
    """A lock that cannot be made. The message has the reason and the remedy."""


class Target(NamedTuple):
    """Nodes for which packages are locked."""

    python: str
    machine: str


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


def render(requirements: str, resolved: Mapping[Target, list[Locked]]) -> str:
    """Render the lock of a requirements.txt: one line a package, with a marker where not all nodes take it.

    Args:
        requirements: text of the requirements.txt.
        resolved: packages by nodes.
    """
    takers: dict[tuple[str, str], list[Target]] = defaultdict(list)
    hashes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for target, packages in resolved.items():
        for each in packages:
            takers[each.name, each.version].append(target)
            hashes[each.name, each.version].add(each.sha256)
    pythons, machines = (tuple(dict.fromkeys(part)) for part in zip(*resolved, strict=True))
    lines = [
        '# Made by "make lock" from requirements.txt: for Linux, from PyPI.',
        f"# Pythons: {' '.join(pythons)}",
        f"# Machines: {' '.join(machines)}",
        f"# Of: {content_sum(requirements)}",
        *_kinds(requirements),
    ]
    for (name, version), targets in sorted(takers.items()):
        marker = _marker(targets, pythons, machines)
        sums = "".join(f" --hash=sha256:{each}" for each in sorted(hashes[name, version]))
        lines.append(f"{name}=={version}{marker and ' ; '}{marker}{sums}")
    return "\n".join(lines) + "\n"


def _marker(targets: Collection[Target], pythons: tuple[str, ...], machines: tuple[str, ...]) -> str:
    """Return the condition that is true on these nodes alone; "" for all nodes."""
    conditions: dict[str, str | None] = {}
    for machine in machines:
        named = [python for python in pythons if Target(python, machine) in targets]
        some = f'python_version in "{" ".join(named)}"' if len(named) < len(pythons) else ""
        conditions[machine] = some if named else None
    if len(set(conditions.values())) == 1:
        return conditions[machines[0]] or ""
    return " or ".join(
        f'platform_machine == "{machine}"{some and " and "}{some}'
        for machine, some in conditions.items()
        if some is not None
    )


def _kinds(requirements: str) -> list[str]:
    """Return pip's options, also for the lock: wheels only, except for `# Source archives:`."""
    sources = re.search(r"^# Source archives: (.+)$", requirements, re.MULTILINE)
    return [
        "--only-binary :all:",
        *(f"--no-binary {each}" for each in (sources[1].split() if sources else ())),
    ]


def resolve(file: Path, target: Target) -> list[Locked]:
    """Ask uv for the packages of these nodes, and choose the file of each that pip would install there.

    Raises:
        LockError: there are no compatible wheels.
    """
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "pylock.toml"
        command = [sys.executable, "-m", "uv", "pip", "compile", str(file), "--output-file", str(lock)]
        command += ["--quiet", "--no-config", "--format=pylock.toml", f"--python-version={target.python}"]
        command += [f"--python-platform={target.machine}-manylinux_2_{GLIBC_MINOR}"]
        command += [word for option in _kinds(file.read_text("utf-8")) for word in option.split()]
        environment = {name: value for name, value in os.environ.items() if name not in _OTHER_SOURCES}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode:
            raise LockError(f"{file}: no packages for {' on '.join(target)}:\n{done.stderr.strip()}")
        return list(_locked(tomllib.loads(lock.read_text("utf-8")), target))


def _locked(lock: Mapping[str, Any], target: Target) -> Iterator[Locked]:
    tags = list(_tags(target))
    for each in lock["packages"]:
        name, version = each["name"], each["version"]
        names = {file["url"].rpartition("/")[2]: file for file in each.get("wheels", ())}
        wheels = {tag: file for wheel, file in names.items() for tag in parse_wheel_filename(wheel)[3]}
        found = next((wheels[tag] for tag in tags if tag in wheels), None) if names else each["sdist"]
        if not found:
            raise LockError(f"{name} {version} has no wheel for {' on '.join(target)}, glibc 2.{GLIBC_MINOR}")
        yield Locked(name=name, version=version, sha256=found["hashes"]["sha256"])


def _tags(target: Target) -> Iterator[Tag]:
    """Yield the tags of wheels for these nodes, in pip's order."""
    levels = [*(f"manylinux_2_{minor}" for minor in range(GLIBC_MINOR, 4, -1)), "manylinux2014", "manylinux1"]
    platforms = [f"{each}_{target.machine}" for each in levels]
    python = tuple(map(int, target.python.split(".")))
    yield from cpython_tags(python, platforms=platforms)
    yield from compatible_tags(python, f"cp{target.python.replace('.', '')}", platforms)


def main(names: Collection[str]) -> int:
    """Write the locks of the named workloads, or all; return the exit status."""
    files = [file for file in requirement_files() if not names or file.parent.name in names]
    if unknown := set(names) - {file.parent.name for file in files}:
        allowed = ", ".join(file.parent.name for file in requirement_files())
        print(f"make lock: no workload {', '.join(sorted(unknown))}. Allowed: {allowed}", file=sys.stderr)
        return 2
    try:
        for file in files:
            requirements = file.read_text("utf-8")
            targets = [Target(*each) for each in product(pythons_of(requirements), MACHINES)]
            resolved = {target: resolve(file, target) for target in targets}
            file.with_name(LOCK).write_text(render(requirements, resolved), encoding="utf-8")
            print(f"wrote {file.with_name(LOCK).relative_to(ROOT)}", file=sys.stderr)
    except LockError as error:
        print(f"make lock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
