"""FSx data repository tasks, which moto lacks: each has succeeded at once, and moves no file."""

import json
import time
import uuid
from typing import Any

from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.fsx.lustre import existing

TASKS: dict[str, dict[str, Any]] = {}


def install() -> None:
    """Add the actions."""
    moto_actions.add("fsx", create_data_repository_task, describe_data_repository_tasks)


def create_data_repository_task(self: Any) -> str:
    """Answer CreateDataRepositoryTask."""
    request = json.loads(self.body)
    existing(request["FileSystemId"])
    id_ = f"task-{uuid.uuid4().hex[:17]}"
    kept = {key: request[key] for key in ("Type", "FileSystemId", "Paths", "Report") if key in request}
    TASKS[id_] = {"TaskId": id_, "Lifecycle": "SUCCEEDED", "CreationTime": time.time(), **kept}
    return json.dumps({"DataRepositoryTask": TASKS[id_]})


def describe_data_repository_tasks(self: Any) -> str:
    """Answer DescribeDataRepositoryTasks, by id or by the filter file-system-id."""
    request = json.loads(self.body)
    found = [each for id_, each in TASKS.items() if id_ in request.get("TaskIds", TASKS)]
    for wanted in request.get("Filters") or []:
        if wanted["Name"] == "file-system-id":
            found = [each for each in found if each["FileSystemId"] in wanted["Values"]]
    return json.dumps({"DataRepositoryTasks": found})
