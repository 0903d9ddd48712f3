"""Locks of our scripts: on regular files that stay, since nodes of a cluster share no kernel.

A lock on a folder of Lustre or NFS holds on one node only, NFS refuses an exclusive lock on a file that is
open for reading, and a folder that a deploy replaces is another one for the jobs that start afterwards.
"""

import re

import pytest

from ops.lint.command import lint
from training_cluster.paths import ASSETS, ROOT

_LOCKS = re.compile(r"^[^#\n]*\bflock\b", re.MULTILINE)
# A folder can only be opened for reading.
_READS = re.compile(r"^[^#\n]*\bexec\s+(?:\{\w+\}|\d+)<(?![>&])", re.MULTILINE)
# The file is flock's first argument after its options, or the target of a redirection.
_REPLACED = re.compile(
    r"^[^#\n]*(?:\bflock\s+(?:-\S+\s+)*|\bexec\s+(?:\{\w+\}|\d+)[<>]+\s*)\"?[^\s\"]*training/", re.MULTILINE
)
_PYTHON = re.compile(r"\b(?:fcntl\.(?:flock|lockf)|portalocker|filelock)\b")

OURS = sorted(
    path
    for folder in (ASSETS, ROOT / "ops" / "account" / "head_node_scripts", ROOT / "ops" / "workload_template")
    for suffix in ("sh", "slurm", "py")
    for path in folder.rglob(f"*.{suffix}")
)
BAD = (
    'exec {lock}<"$RUN_DIR"\nflock "$lock"\n',
    'exec 9< "$RUN_DIR/owner"\nflock --timeout 5 9\n',
    'flock "$TRAINING_SHARED/training/gpt2" bash prepare.sh\n',
    'flock "$training/training/.lock" bash prepare.sh\n',
    'exec 9>>"/fsx/training/lock"\nflock 9\n',
    'flock "$DATA_DIR" bash prepare.sh\n',
    "import fcntl\nfcntl.flock(file, fcntl.LOCK_EX)\n",
)


def wrong_locks(text: str, name: str) -> list[str]:
    """Return the lines of a script that take a lock which does not hold for all nodes."""
    if name.endswith(".py") or "import fcntl" in text:
        return _PYTHON.findall(text)
    if not _LOCKS.search(text):
        return []
    found = [each.group() for pattern in (_READS, _REPLACED) for each in pattern.finditer(text)]
    return found + [each.rule for each in lint(text, name=name) if each.rule == "flock-on-folder"]


@pytest.mark.parametrize("text", BAD)
def test_a_lock_within_one_node_is_found(text: str) -> None:
    assert wrong_locks(text, "script.sh")


def test_our_scripts_lock_regular_files_that_stay() -> None:
    wrong = {str(path.relative_to(ROOT)): wrong_locks(path.read_text(), path.name) for path in OURS}
    assert {path: locks for path, locks in wrong.items() if locks} == {}


def test_the_scripts_that_lock_are_among_them() -> None:
    locking = {path.name for path in OURS if path.suffix != ".py" and _LOCKS.search(path.read_text())}
    assert locking >= {"bootstrap.sh", "prolog.sh", "job.slurm", "submit-once.sh"}
