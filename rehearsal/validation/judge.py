"""Runs in .venv-pcluster: the real schema and the real validators judge cluster configs.

Called by: rehearsal/validation/library.py, with the environment of a client of the local AWS. One
JSON object a line comes in (`name`, `config`), one goes out (`name`, `failures`: each with `level`,
`validator` and `message`).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import yaml
from pcluster.config.common import FailureLevel
from pcluster.models.cluster import Cluster, ConfigValidationError


def judge(config: dict[str, Any], cluster_name: str) -> list[dict[str, str]]:
    """What the library says of a config, as `pcluster create-cluster --dryrun` would."""
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
    """Judge one config a line, until there are no more."""
    for line in sys.stdin:
        case = json.loads(line)
        failures = judge(case["config"], case["cluster_name"])
        print(json.dumps({"name": case["name"], "failures": failures}), flush=True)


if __name__ == "__main__":
    main()
