"""The ParallelCluster library in its own environment, asked in one process: it takes 0.6 s to import."""

import json
import os
import subprocess
from collections.abc import Sequence

from training_cluster.paths import PCLUSTER_PYTHON, ROOT

# A wrong type may be a TypeError.
_JUDGE = """
import json, sys
from marshmallow import ValidationError
from pcluster.schemas.cluster_schema import ClusterSchema
def refusal(config):
    try:
        ClusterSchema(cluster_name="any").load(config)
    except (ValidationError, TypeError) as error:
        return repr(error)
json.dump([refusal(config) for config in json.load(sys.stdin)], sys.stdout)
"""


def library(*arguments: str, given: object = None) -> str:
    """Run Python with the library; return what it prints. The JSON of `given` is its input."""
    return subprocess.run(
        [PCLUSTER_PYTHON, *arguments],
        cwd=ROOT,
        env=os.environ | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"},
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


def refusals(configs: Sequence[object]) -> list[str | None]:
    """Return the schema's refusal of each config; None for one that it takes."""
    found: list[str | None] = json.loads(library("-c", _JUDGE, given=configs))
    return found
