"""The real schema and validators, which check cluster configs; runs in .venv-pcluster.

Called by: rehearsal/validation/run.py, with the environment of a client of the local AWS. It reads one
JSON object per line (`name`, `config`) and writes one (`name`, `failures`: each with `level`, `validator`
and `message`).
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from pcluster.config.common import FailureLevel
from pcluster.models.cluster import Cluster, ConfigValidationError

sys.path.append(str(Path(__file__).parents[2]))
from rehearsal.faults.inside.shared_clients import share_clients


def judge(config: dict[str, Any], cluster_name: str) -> list[dict[str, str]]:
    """Return the library's findings for a config, as `pcluster create-cluster --dryrun` does."""
    try:
        found = Cluster(cluster_name, config=yaml.safe_dump(config)).validate_create_request(
            set(), FailureLevel.ERROR
        )
    except ConfigValidationError as error:
        found = error.validation_failures or []
        if not found:
            return [{"level": "ERROR", "validator": type(error).__name__, "message": str(error)}]
    return [
        {"level": each.level.name, "validator": each.validator_type, "message": each.message}
        for each in found
    ]


def main() -> None:
    """Check one config per line, until standard input ends."""
    share_clients()
    for line in sys.stdin:
        case = json.loads(line)
        failures = judge(case["config"], case["cluster_name"])
        print(json.dumps({"name": case["name"], "failures": failures}), flush=True)


if __name__ == "__main__":
    main()
