"""Shared storage of a cluster config: our two mounts by flags, the rest by overrides."""

from collections.abc import Mapping
from typing import Any

from ops.importing.flags import take
from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import load_base
from training_cluster.overrides.storage import managed_storage

OUR_EFS = "efs"
OUR_STORAGE = ("shared", OUR_EFS)
"""Names of our mounts in the cluster config."""
_OLDER = "PERSISTENT_1"
_SUCCESSORS = {50: 125, 100: 125, 200: 250}
"""Throughput of the older durable type, MB/s a TiB, and the next one of the newer type that is not less."""
_LUSTRE_TYPES = {"SCRATCH_2": "scratch2", "PERSISTENT_2": "persistent2"}
_LUSTRE_KEPT = (
    *("DeploymentType", "StorageCapacity", "PerUnitStorageThroughput", "DeletionPolicy"),
    *("DataCompressionType", "FileSystemTypeVersion", "WeeklyMaintenanceStartTime"),
)
_ACCESS = ("AccessPointId", "IamAuthorization")
"""Keys of our EFS that overrides may set."""
_EFS_KEPT = (
    *("FileSystemId", "Encrypted", "EncryptionInTransit", "DeletionPolicy"),
    *("ThroughputMode", "ProvisionedThroughput", "PerformanceMode", *_ACCESS),
)


def is_ours(item: Mapping[str, Any]) -> bool:
    """Return True for storage that is mounted where ours is, and of its kind."""
    base, folder = load_base(), str(item.get("MountDir", "")).rstrip("/")
    folder = folder if folder.startswith("/") else f"/{folder}"
    return (item.get("StorageType"), folder) in {
        ("FsxLustre", base.shared_dir),
        ("Efs", base.efs_dir),
        ("Efs", "/home"),
    }


def take_storage(config: Config, to: Translation) -> None:
    """Take the storage that is mounted where ours is; other storage stays for the overrides."""
    for item in config.get("SharedStorage", []):
        path, kind = f"SharedStorage[{item.get('Name')}]", item.get("StorageType")
        flag = "fsx_id" if kind == "FsxLustre" else "efs_id"
        settings = item.get(f"{kind}Settings", {})
        if not is_ours(item) or kind in to.mounted:
            for each in managed_storage({"SharedStorage": [item]}):
                _note_retention(each.settings, path, to)
            continue
        to.mounted.add(str(kind))
        if kind == "FsxLustre":
            to.carry(path)
        carried = (f"{kind}Settings.{key}" for key in settings if key not in _ACCESS)
        to.carry(*(f"{path}.{key}" for key in ("StorageType", "MountDir", *carried)))
        take(to, flag, settings.get("FileSystemId"), f"{path}.{kind}Settings.FileSystemId")
        if kind == "FsxLustre":
            _lustre(settings, path, to)
        else:
            _efs(item, settings, path, to)


def _note_retention(settings: Mapping[str, Any], path: str, to: Translation) -> None:
    if "DeletionPolicy" not in settings:
        to.replaced.append(f"{path}: DeletionPolicy: Retain, where ParallelCluster's default is Delete")


def _efs(item: Mapping[str, Any], settings: Mapping[str, Any], path: str, to: Translation) -> None:
    if str(item.get("MountDir")).strip("/") == "home":
        to.flags["home"] = "efs"
    take(to, "efs_mibps", settings.get("ProvisionedThroughput"), f"{path}.EfsSettings.ProvisionedThroughput")
    to.lose_others(settings, f"{path}.EfsSettings", _EFS_KEPT, "the app creates its EFS with other settings")


def _lustre(settings: Mapping[str, Any], path: str, to: Translation) -> None:
    inner = f"{path}.FsxLustreSettings"
    if settings.get("FileSystemId"):
        return
    kind, throughput = settings.get("DeploymentType", "SCRATCH_2"), settings.get("PerUnitStorageThroughput")
    if kind == _OLDER and throughput in _SUCCESSORS:
        successor = _SUCCESSORS[throughput]
        words = f"{_OLDER}, {throughput} MB/s a TiB -> PERSISTENT_2, {successor}"
        to.replaced.append(f"{inner}.DeploymentType: {words}")
        kind, throughput = "PERSISTENT_2", successor
    if kind in _LUSTRE_TYPES:
        take(to, "fsx_type", _LUSTRE_TYPES[kind], f"{inner}.DeploymentType")
    else:
        to.lose(f"{inner}.DeploymentType", kind, "-c fsx_type takes persistent2, scratch2")
    take(to, "fsx_gib", settings.get("StorageCapacity"), f"{inner}.StorageCapacity")
    take(to, "fsx_mbps_per_tib", throughput, f"{inner}.PerUnitStorageThroughput")
    if window := settings.get("WeeklyMaintenanceStartTime"):
        to.fill.append(
            f"{inner}.WeeklyMaintenanceStartTime: after the deploy: "
            "aws fsx update-file-system --file-system-id FILE_SYSTEM_ID "
            f"--lustre-configuration WeeklyMaintenanceStartTime={window}"
        )
    kept = (*_LUSTRE_KEPT, *(("StorageType",) if settings.get("StorageType") == "SSD" else ()))
    to.lose_others(settings, inner, kept, "the app's Lustre is linked to the bucket and retained")
