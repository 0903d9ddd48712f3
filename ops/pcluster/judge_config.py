"""Lets the real ParallelCluster library check one cluster config, in .venv-pcluster; changes nothing.

Called by: ops/pcluster/dry_run.py, with the environment of a client of AWS. One JSON object comes in on
stdin (`cluster_name`, `config`); the last line of stdout is the answer, the fields of its DryRun.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from pcluster.aws.aws_api import AWSApi
from pcluster.aws.common import AWSClientError
from pcluster.config.common import FailureLevel
from pcluster.config.config_patch import ConfigPatch
from pcluster.models.cluster import (
    BadRequestClusterActionError,
    Cluster,
    ClusterActionError,
    ClusterUpdateError,
    ConfigValidationError,
)

_OUR_TAGS = "training-cluster:"
_NO_CHANGES = "no changes found"
_SUCCEEDED = "SUCCEEDED"


def judge(cluster_name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the library's answer about a new cluster, or about an update of the existing one."""
    answer: dict[str, Any] = {"exists": False, "messages": [], "refused_changes": {}, "refusal": ""}
    try:
        answer["exists"] = bool(AWSApi.instance().cfn.stack_exists(cluster_name))
        answer["messages"] = _messages((_update if answer["exists"] else _create)(cluster_name, config))
    except ConfigValidationError as error:
        found = _messages(error.validation_failures)
        answer["messages"] = found or [
            {"level": "ERROR", "validator": type(error).__name__, "text": str(error)}
        ]
    except ClusterUpdateError as error:
        answer["refused_changes"] = _refused(error.update_changes)
    except BadRequestClusterActionError as error:
        if _NO_CHANGES not in str(error).lower():
            answer["refusal"] = str(error)
    except (ClusterActionError, AWSClientError) as error:
        answer["refusal"] = str(error)
    return answer


def _create(name: str, config: dict[str, Any]) -> Iterable[Any]:
    found: Iterable[Any] = Cluster(name, config=yaml.safe_dump(config)).validate_create_request(
        set(), FailureLevel.ERROR
    )
    return found


def _update(name: str, config: dict[str, Any]) -> Iterable[Any]:
    cluster = Cluster(name)
    stored = yaml.safe_load(cluster.source_config_text).get("Tags") or []
    tags = config.get("Tags") or []
    # The provider's own tag names the stack that owns the cluster; a cluster's tags can never change.
    named = {each["Key"] for each in tags}
    added = [each for each in stored if each["Key"].startswith(_OUR_TAGS) and each["Key"] not in named]
    whole = yaml.safe_dump(config | {"Tags": [*tags, *added]})
    found: Iterable[Any] = cluster.validate_update_request(whole, set(), FailureLevel.ERROR)[2]
    return found


def _messages(failures: Iterable[Any]) -> list[dict[str, str]]:
    return [
        {"level": each.level.name, "validator": each.validator_type, "text": each.message}
        for each in failures
    ]


def _refused(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Read ConfigPatch.check's table: the names of its columns first, then one row per change."""
    found = (dict(zip(rows[0], row, strict=True)) for row in rows[1:])
    return {
        ConfigPatch.build_config_param_path(each["param_path"], each["parameter"]): _refusal(each)
        for each in found
        if each["check"] != _SUCCEEDED
    }


def _refusal(change: dict[str, Any]) -> str:
    said = [part for part in (change["reason"], change["action_needed"]) if part]
    return ". ".join(said) or "the library gives no reason"


def main() -> None:
    """Answer the request on stdin."""
    asked = json.load(sys.stdin)
    print(json.dumps(judge(asked["cluster_name"], asked["config"])), flush=True)


if __name__ == "__main__":
    main()
