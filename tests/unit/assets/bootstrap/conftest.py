"""Nodes for steps: one of this user's, and one whose disk other users reach."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine


@pytest.fixture
def node(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def shared_node() -> Iterator[Machine]:
    """Yield a head node that other users reach, under root's strictest umask."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        node = Machine(Path(name))
        node.environment["NODE_TYPE"] = "HeadNode"
        for folder in ("home", "efs", "fsx"):
            (node.root / folder).mkdir()
            (node.root / folder).chmod(0o1777)
        umask = os.umask(0o077)
        yield node
        os.umask(umask)
