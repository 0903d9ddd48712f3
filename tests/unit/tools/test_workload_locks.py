"""tools/workload_locks.py: the locks of the workloads' packages."""

import re
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.workload_locks import (
    LOCK,
    MACHINES,
    Locked,
    Target,
    content_sum,
    pythons_of,
    render,
    requirement_files,
    resolve,
)

FILES = requirement_files()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_workload_has_its_present_lock(file: Path) -> None:
    requirements, lock = file.read_text(), file.with_name(LOCK).read_text()
    assert f"# Of: {content_sum(requirements)}\n" in lock, f"{file} has changed: make lock"
    assert f"# Pythons: {' '.join(pythons_of(requirements))}\n# Machines: {' '.join(MACHINES)}\n" in lock
    pinned = re.findall(r"^([\w.-]+==[\w.]+)", requirements, re.MULTILINE)
    assert [each for each in pinned if f"\n{each}" not in lock] == []
    lines = [each for each in lock.splitlines() if not each.startswith(("#", "--"))]
    assert [each for each in lines if not re.search(r"( --hash=sha256:[0-9a-f]{64})+$", each)] == []
    assert all("==" in str(Requirement(each.partition(" --hash")[0]).specifier) for each in lines)


def test_packages_of_some_nodes_have_a_marker() -> None:
    def lines(*takers: tuple[str, str]) -> list[str]:
        targets = [Target(*each) for each in product(("3.10", "3.11"), MACHINES)]
        package = Locked(name="a", version="1", sha256="0")
        found = {each: [package] if each in takers else [] for each in targets}
        return render("", found).splitlines()[5:]

    x86, arm = ([(python, machine) for python in ("3.10", "3.11")] for machine in MACHINES)
    for takers, marker in (
        ([*x86, *arm], ""),
        ([x86[0], arm[0]], ' ; python_version in "3.10"'),
        (arm, ' ; platform_machine == "aarch64"'),
        (
            [*x86, arm[0]],
            ' ; platform_machine == "x86_64" or platform_machine == "aarch64" and python_version in "3.10"',
        ),
    ):
        assert lines(*takers) == [f"a==1{marker} --hash=sha256:0"]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_nodes_find_every_locked_package(file: Path, machine: str) -> None:
    """uv asks PyPI without such a machine: the lock is complete, and has the hash of a wheel that fits."""
    lock = file.with_name(LOCK)
    for python in pythons_of(file.read_text()):
        for each in resolve(lock, Target(python, machine)):
            line = rf"^{each.name}=={re.escape(each.version)} .*{each.sha256}"
            assert re.search(line, lock.read_text(), re.MULTILINE), each
