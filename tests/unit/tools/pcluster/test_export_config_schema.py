"""The exported schema of cluster configs is the library's present one."""

import os
import subprocess

import pytest

from training_cluster.paths import PCLUSTER_PYTHON, ROOT
from training_cluster.pcluster.schema import SCHEMA


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
