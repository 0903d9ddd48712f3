"""FSx volumes of OpenZFS and ONTAP, ONTAP's virtual machines, and file caches, which moto lacks."""

import json
import uuid
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.fsx.lustre import fsx

Properties = dict[str, Any]
_RECORDS: dict[str, Properties] = {}


def install() -> None:
    """Add the actions that create and describe them."""
    for what, prefix, complete in (
        ("Volume", "fsvol", _volume),
        ("StorageVirtualMachine", "svm", _virtual_machine),
        ("FileCache", "fc", _cache),
    ):
        moto_actions.add("fsx", *_actions(what, prefix, complete))


def _actions(
    what: str, prefix: str, complete: Callable[[Properties], Properties]
) -> tuple[Callable[[Any], str], Callable[[Any], str]]:
    def create(self: Any) -> str:
        wanted, id_ = json.loads(self.body), f"{prefix}-{uuid.uuid4().hex[:17]}"
        _RECORDS[id_] = {f"{what}Id": id_, "Lifecycle": "AVAILABLE", **wanted, **complete(wanted)}
        return json.dumps({what: _RECORDS[id_]})

    def describe(self: Any) -> str:
        ids = json.loads(self.body)[f"{what}Ids"]
        if missing := [each for each in ids if each not in _RECORDS]:
            raise moto_actions.json_error(f"{what}NotFound", f"{', '.join(missing)} does not exist.")
        return json.dumps({f"{what}s": [_RECORDS[each] for each in ids]})

    snake = {"Volume": "volume", "FileCache": "file_cache"}.get(what, "storage_virtual_machine")
    create.__name__, describe.__name__ = f"create_{snake}", f"describe_{snake}s"
    return create, describe


def _volume(wanted: Properties) -> Properties:
    if wanted["VolumeType"] == "ONTAP":
        machine = _RECORDS[wanted["OntapConfiguration"]["StorageVirtualMachineId"]]
        return {"FileSystemId": machine["FileSystemId"]}
    system = next(each for each in fsx().file_systems.values() if each.file_system_type == "OPENZFS")
    path = {"VolumePath": f"/fsx/{wanted['Name']}"}
    return {"FileSystemId": system.file_system_id, "OpenZFSConfiguration": path}


def _virtual_machine(_: Properties) -> Properties:
    return {"Endpoints": {"Nfs": {"DNSName": "svm.fsx.us-east-1.amazonaws.com"}}}


def _cache(wanted: Properties) -> Properties:
    interface = ec2().create_network_interface(
        subnet=wanted["SubnetIds"][0], private_ip_address=None, group_ids=wanted["SecurityGroupIds"]
    )
    return {
        **{"DNSName": "fc.fsx.us-east-1.amazonaws.com", "LustreConfiguration": {"MountName": "cache"}},
        **{"VpcId": interface.subnet.vpc_id, "NetworkInterfaceIds": [interface.id]},
    }
