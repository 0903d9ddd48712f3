"""FSx data repository associations and tasks, which moto lacks, as records; no file is imported or exported.

While an association is being created, another one of its file system fails, as on AWS (terraform-provider-aws
issue 24678). Each task has succeeded at once.
"""

import json
import time
import uuid
from pathlib import PurePosixPath
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.handlers import changed, register, simple
from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_actions import json_error
from rehearsal.local_aws.emulators.moto_types import Created, Properties
from rehearsal.local_aws.fsx.lustre import existing, fsx

# A change of any other property replaces the association (CloudFormation's page of the resource type).
_IN_PLACE = {"S3", "ImportedFileChunkSize", "Tags"}
_MEMBERS = {
    "FileSystemId",
    "FileSystemPath",
    "DataRepositoryPath",
    "BatchImportMetaDataOnCreate",
    "ImportedFileChunkSize",
    "S3",
    "Tags",
}
_MAX_PER_FILE_SYSTEM = 8
_CREATION_S = 2.0
"""Duration of a creation, for which AWS takes minutes."""
_SECOND_AT_ONCE = "Amazon FSx does not have the required permissions for the S3 bucket"
"""AWS's message for the second of two concurrent creations, whatever the permissions."""

Association = dict[str, Any]
_ASSOCIATIONS: dict[str, Association] = {}
_AVAILABLE_AT: dict[str, float] = {}
"""End of each creation in progress, on the monotonic clock."""
TASKS: dict[str, dict[str, Any]] = {}


def install() -> None:
    """Add the actions and the resource type."""
    moto_actions.add(
        "fsx",
        create_data_repository_association,
        describe_data_repository_associations,
        delete_data_repository_association,
        create_data_repository_task,
        describe_data_repository_tasks,
    )
    register(
        "AWS::FSx::DataRepositoryAssociation",
        simple(_create, lambda id_, _: _ASSOCIATIONS.pop(id_, None), _update),
    )


def create_data_repository_association(self: Any) -> str:
    """Answer CreateDataRepositoryAssociation; the creation has begun or failed."""
    return json.dumps({"Association": _associate(json.loads(self.body))})


def describe_data_repository_associations(self: Any) -> str:
    """Answer DescribeDataRepositoryAssociations, by id or by the filter file-system-id."""
    _end_creations()
    request = json.loads(self.body)
    found = [_find(id_) for id_ in request.get("AssociationIds") or []] or [
        a for a in _ASSOCIATIONS.values() if a["FileSystemId"] in fsx().file_systems
    ]
    return json.dumps({"Associations": _filtered(found, request)})


def _filtered(records: list[dict[str, Any]], request: dict[str, Any]) -> list[dict[str, Any]]:
    for wanted in request.get("Filters") or []:
        if wanted["Name"] == "file-system-id":
            records = [each for each in records if each["FileSystemId"] in wanted["Values"]]
    return records


def delete_data_repository_association(self: Any) -> str:
    """Answer DeleteDataRepositoryAssociation."""
    id_ = json.loads(self.body)["AssociationId"]
    del _ASSOCIATIONS[_find(id_)["AssociationId"]]
    return json.dumps({"AssociationId": id_, "Lifecycle": "DELETING", "DeleteDataInFileSystem": False})


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
    return json.dumps({"DataRepositoryTasks": _filtered(found, request)})


def _find(id_: str) -> Association:
    if id_ not in _ASSOCIATIONS:
        raise json_error(
            "DataRepositoryAssociationNotFound", f"Data repository association '{id_}' not found"
        )
    return _ASSOCIATIONS[id_]


def _associate(wanted: Properties) -> Association:
    system = existing(wanted["FileSystemId"])
    if system.lustre_configuration["DeploymentType"] == "SCRATCH_1":
        raise json_error(
            "BadRequest", "Data repository associations are not supported on SCRATCH_1 file systems."
        )
    _end_creations()
    siblings = [each for each in _ASSOCIATIONS.values() if each["FileSystemId"] == wanted["FileSystemId"]]
    _refuse_overlaps(wanted, siblings)
    failed = any(each["Lifecycle"] == "CREATING" for each in siblings)
    id_ = f"dra-{uuid.uuid4().hex[:17]}"
    _ASSOCIATIONS[id_] = {key: wanted[key] for key in wanted.keys() & _MEMBERS} | {
        "AssociationId": id_,
        "ResourceARN": f"arn:aws:fsx:{REGION}:{ACCOUNT}:association/{wanted['FileSystemId']}/{id_}",
        "Lifecycle": "FAILED" if failed else "CREATING",
        **({"FailureDetails": {"Message": _SECOND_AT_ONCE}} if failed else {}),
    }
    if not failed:
        _AVAILABLE_AT[id_] = time.monotonic() + _CREATION_S
    return _ASSOCIATIONS[id_]


def _end_creations() -> None:
    """Make each association available whose creation time is over."""
    now = time.monotonic()
    for id_ in [each for each, end in _AVAILABLE_AT.items() if end <= now]:
        del _AVAILABLE_AT[id_]
        if id_ in _ASSOCIATIONS:  # it may have been deleted in the meantime
            _ASSOCIATIONS[id_]["Lifecycle"] = "AVAILABLE"


def _refuse_overlaps(wanted: Properties, siblings: list[Association]) -> None:
    """Refuse an association that overlaps with the directory or S3 prefix of another.

    CloudFormation creates before it deletes, so a new FileSystemPath alone cannot replace an association.
    """
    if len(siblings) >= _MAX_PER_FILE_SYSTEM:
        raise json_error("ServiceLimitExceeded", f"{_MAX_PER_FILE_SYSTEM} associations a file system")
    path = PurePosixPath(wanted["FileSystemPath"])
    for sibling in siblings:
        other = PurePosixPath(sibling["FileSystemPath"])
        if path.is_relative_to(other) or other.is_relative_to(path):
            raise json_error("BadRequest", f"FileSystemPath {path} overlaps with {other}")
        if wanted["DataRepositoryPath"].rstrip("/") == sibling["DataRepositoryPath"].rstrip("/"):
            raise json_error("BadRequest", f"{wanted['DataRepositoryPath']} is already linked to {other}")


def _create(_logical_id: str, properties: Properties, _stack: str) -> Created:
    """Create an association that is available at once, since CloudFormation waits until it is available."""
    association = _associate(properties)
    if association["Lifecycle"] == "FAILED":
        del _ASSOCIATIONS[association["AssociationId"]]
        raise RuntimeError(f"{_SECOND_AT_ONCE} (FAILED)")
    del _AVAILABLE_AT[association["AssociationId"]]
    association["Lifecycle"] = "AVAILABLE"
    return _created(association)


def _created(association: Association) -> Created:
    id_ = association["AssociationId"]
    return id_, {"AssociationId": id_, "ResourceARN": association["ResourceARN"]}


def _update(id_: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
    if changed(old, new) - _IN_PLACE:
        return _create(logical_id, new, stack)
    _find(id_).update({key: new[key] for key in new.keys() & _IN_PLACE})
    return _created(_find(id_))
