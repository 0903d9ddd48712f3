"""The exported schema of cluster configs is the library's present one."""

import json
import os
import subprocess

import pytest

from training_cluster.paths import PCLUSTER_PYTHON, ROOT
from training_cluster.pcluster.schema import SCHEMA


def _library(*arguments: str, given: object = None) -> str:
    return subprocess.run(
        [PCLUSTER_PYTHON, *arguments],
        cwd=ROOT,
        env=os.environ | {"AWS_DEFAULT_REGION": "us-east-1"},
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
def test_the_schema_is_what_the_library_exports() -> None:
    assert SCHEMA.read_text() == _library("-m", "tools.pcluster.export_config_schema"), "make schema"
