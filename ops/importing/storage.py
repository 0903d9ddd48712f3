"""Shared storage of a cluster config: our two mounts by flags, the rest by overrides."""

from collections.abc import Mapping
from typing import Any

from ops.importing.comparison import OUR_EFS, OUR_LUSTRE
from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import load_base
from training_cluster.cluster.config import HOME
from training_cluster.flags.storage import FSX_STEP_GIB
from training_cluster.overrides.reserved import flag_for, reserved_reason
from training_cluster.overrides.storage import managed_storage

_OLDER = "PERSISTENT_1"
_SUCCESSORS = {50: 125, 100: 125, 200: 250}
"""Throughput of the older durable type, MB/s a TiB, and the next one of the newer type that is not less."""
_LINKS = ("ImportPath", "ExportPath", "AutoImportPolicy", "ImportedFileChunkSize")


def _kept_as(item: Mapping[str, Any]) -> str | None:
    """Return our name of storage that is mounted where ours is, and of its kind."""
    base, folder = load_base(), "/" + str(item.get("MountDir", "")).strip("/")
    ours = {
        ("FsxLustre", base.shared_dir): OUR_LUSTRE,
        ("Efs", base.efs_dir): OUR_EFS,
        ("Efs", HOME): OUR_EFS,
    }
    return ours.get((str(item.get("StorageType")), folder))


def take_storage(config: Config, to: Translation) -> None:
    """Take the storage that is mounted where ours is; other storage stays for the overrides."""
    storage = config.get("SharedStorage", [])
    taken: dict[str, dict[str, Any]] = {}
    for item in storage:
        if (ours := _kept_as(item)) and ours not in taken:
            taken[ours] = item
    for item in storage:
        name, kind = str(item.get("Name")), str(item.get("StorageType"))
        settings = item.setdefault(f"{kind}Settings", {})
        is_managed = any(managed_storage({"SharedStorage": [item]}))
        ours = next((each for each, of in taken.items() if of is item), None)
        if ours:
            item |= {"Name": ours, "MountDir": "/" + str(item["MountDir"]).strip("/")}
        elif name in (OUR_LUSTRE, OUR_EFS):
            item["Name"] = f"own-{name}"
            to.note("moved", f"SharedStorage[{name}].Name", f"named own-{name}, since ours has the name")
        to.renamed[f"SharedStorage[{item.get('Name')}]"] = f"SharedStorage[{name}]"
        path = f"SharedStorage[{item.get('Name')}].{kind}Settings"
        if is_managed and "DeletionPolicy" not in settings:
            words = "Retain, where ParallelCluster's default is Delete: it stays when the cluster is deleted"
            to.note("replaced", f"{path}.DeletionPolicy", words)
        if ours == OUR_LUSTRE:
            _lustre(settings, path, to)
        elif ours and settings.get("ThroughputMode") == "provisioned":
            del settings["ThroughputMode"]  # ProvisionedThroughput says it


def _lustre(settings: dict[str, Any], path: str, to: Translation) -> None:
    if "FileSystemId" in settings:
        return
    links = {key: settings.pop(key) for key in _LINKS if key in settings}
    if links:
        words = (
            "the app links its own bucket; below a folder of its own, after the deploy: "
            "aws fsx create-data-repository-association --file-system-id FILE_SYSTEM_ID "
            f"--file-system-path /NAME --data-repository-path {links.get('ImportPath', 's3://BUCKET')}"
        )
        to.lose(f"{path}.{next(iter(links))}", ", ".join(map(str, links.values())), words)
    if window := settings.pop("WeeklyMaintenanceStartTime", None):
        to.fill.append(
            f"{path}.WeeklyMaintenanceStartTime: after the deploy: "
            "aws fsx update-file-system --file-system-id FILE_SYSTEM_ID "
            f"--lustre-configuration WeeklyMaintenanceStartTime={window}"
        )
    kind, throughput = settings.setdefault("DeploymentType", "SCRATCH_2"), "PerUnitStorageThroughput"
    if kind == _OLDER and settings.get(throughput) in _SUCCESSORS:
        successor = _SUCCESSORS[settings[throughput]]
        to.note("replaced", f"{path}.DeploymentType", f"{_OLDER} -> PERSISTENT_2")
        to.note("replaced", f"{path}.{throughput}", f"{settings[throughput]} -> {successor} MB/s a TiB")
        settings |= {"DeploymentType": "PERSISTENT_2", throughput: successor}
    size = settings.get("StorageCapacity")
    key = f"{path}.StorageCapacity"
    if isinstance(size, int) and not flag_for(key, size):
        larger = max(-(-size // FSX_STEP_GIB) * FSX_STEP_GIB, FSX_STEP_GIB)
        to.note("replaced", key, f"{size} -> {larger}: FSx takes 1200 or a multiple of {FSX_STEP_GIB}")
        settings["StorageCapacity"] = larger
    for key in ("DeploymentType", throughput):
        if key in settings and not flag_for(f"{path}.{key}", settings[key]):
            reason = reserved_reason(settings[key], f"{path}.{key}")
            to.lose(f"{path}.{key}", settings[key], str(reason))
