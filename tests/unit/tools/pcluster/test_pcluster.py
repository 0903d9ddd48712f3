"""The exported schema of cluster configs, and the table of permissions, are the present ones."""

import os
import subprocess

import pytest

from rehearsal.recording import judged_calls
from tools.pcluster.permissions_table import with_calls, with_types
from training_cluster.paths import PCLUSTER_PYTHON, ROOT
from training_cluster.pcluster.schema import SCHEMA
from training_cluster.permissions.table import PATH, dump, load


@pytest.mark.slow
def test_schema_is_what_the_library_exports() -> None:
    exported = subprocess.run(
        [PCLUSTER_PYTHON, "-m", "tools.pcluster.export_config_schema"],
        cwd=ROOT,
        env=os.environ | {"AWS_DEFAULT_REGION": "us-east-1"},
        input="null",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert SCHEMA.read_text() == exported, "make schema"


def test_the_table_of_permissions_is_the_present_one() -> None:
    """Compare with cfn-lint's copy; a newer one may declare more, and each new action needs a decision."""
    assert dump(load()) == PATH.read_text(encoding="utf-8")
    rows = load()
    recording = judged_calls.PATH.read_text(encoding="utf-8")
    assert dump(with_calls(rows, recording)) == dump(rows), "type: make permissions"
    assert dump(with_types(load())) == dump(load()), "type: make permissions"
