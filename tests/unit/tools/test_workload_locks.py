"""tools/workload_locks.py: the locks of the workloads' packages."""

import re
from pathlib import Path

import pytest

from tools.workload_locks import LOCK, content_sum, pythons_of, requirement_files

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
