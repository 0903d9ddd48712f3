"""tools/workload_locks.py: the locks of the workloads' packages."""

import re
from pathlib import Path

import pytest

from tools.workload_locks import (
    LOCK,
    PYTHONS,
    Locked,
    LockError,
    _locked,
    content_sum,
    pythons_of,
    render,
    requirement_files,
)
from training_cluster.paths import TRAINING

FILES = requirement_files()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_workload_has_its_present_lock(file: Path) -> None:
    requirements, lock = file.read_text(), file.with_name(LOCK).read_text()
    assert f"# Of: {content_sum(requirements)}\n" in lock, f"{file} has changed: make lock"
    assert f"# Pythons: {' '.join(pythons_of(requirements))}\n" in lock
    pinned = re.findall(r"^([\w.-]+==[\w.]+)", requirements, re.MULTILINE)
    assert [each for each in pinned if f"\n{each}" not in lock] == []
    line = re.compile(r'[a-z0-9-]+==[\w.+]+( ; python_version in "[\d. ]+")?( --hash=sha256:[0-9a-f]{64})+')
    lines = [each for each in lock.splitlines() if not each.startswith(("#", "--"))]
    assert [each for each in lines if not line.fullmatch(each)] == []


def test_pythons_of_locks_make_environments() -> None:
    found = re.findall(r"python(3\.\d+)", (TRAINING / "environment.sh").read_text())
    assert set(PYTHONS) <= set(found)


def test_package_in_two_versions_has_two_lines() -> None:
    old, new = (Locked(name="a", version=version, sha256="0" * 64) for version in ("1", "2"))
    every = {"3.10": Locked(name="b", version="1", sha256="1" * 64)}
    every["3.11"] = every["3.12"] = Locked(name="b", version="1", sha256="2" * 64)
    resolved = {"3.10": [old, every["3.10"]], "3.11": [new, every["3.11"]], "3.12": [new, every["3.12"]]}
    assert render("# Source archives: b\na\nb==1\n", resolved).splitlines()[1:] == [
        "# Pythons: 3.10 3.11 3.12",
        "# Of: " + content_sum("a\nb==1\n"),
        "--only-binary :all:",
        "--no-binary b",
        f'a==1 ; python_version in "3.10" --hash=sha256:{"0" * 64}',
        f'a==2 ; python_version in "3.11 3.12" --hash=sha256:{"0" * 64}',
        f"b==1 --hash=sha256:{'1' * 64} --hash=sha256:{'2' * 64}",
    ]


@pytest.mark.parametrize(
    ("archive", "wheel", "said"),
    [
        ({}, "a-1-py3-none-any.whl", "the index gives no SHA-256 of a 1"),
        (
            {"hash": f"sha256={'0' * 64}"},
            "a-1-cp312-cp312-manylinux_2_39_x86_64.whl",
            "a 1: its wheel needs glibc 2.39, and nodes have 2.34",
        ),
    ],
)
def test_wheel_that_no_node_takes_is_refused(archive: dict[str, object], wheel: str, said: str) -> None:
    entry: dict[str, dict[str, object]] = {
        "metadata": {"name": "a", "version": "1"},
        "download_info": {"url": f"https://host/{wheel}", "archive_info": archive},
    }
    with pytest.raises(LockError, match=re.escape(said)):
        list(_locked({"install": [entry]}))
