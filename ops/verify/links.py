"""Checks of Lustre's links to the bucket: their state, and a small object in each direction.

The objects have names of their own, and each is removed on both sides, also after Ctrl-C: a link copies no
deletion.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ops.account.session import unless
from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import load_base
from training_cluster.stack_names import STORAGE_STACK

_SCRIPT = "probe-link.sh"
_NOT_THERE = ("404", "NoSuchKey", "NotFound")
_POLL_S = 5.0
MOST_WAIT_S = 300.0
"""Longest wait for a copy; FSx publishes no time for one."""
_NO_LINKS = "no links: the file system is scratch or your own"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A small file on Lustre, and the object of the same name in the bucket."""

    scene: Scene
    bucket: str
    key: str
    path: str
    text: str

    def on_lustre(self) -> str:
        """Return the file's text; empty without the file. Raises OpsError and botocore's errors."""
        return self.scene.head_node.run_script(_SCRIPT, "print", self.path, reads_only=True)

    def write_to_lustre(self) -> None:
        """Write the file. Raises OpsError and botocore's errors."""
        self.scene.head_node.run_script(_SCRIPT, "write", self.path, self.text)

    def in_bucket(self) -> str:
        """Return the object's text; empty without the object. Raises botocore's errors."""
        s3 = self.scene.client("s3")
        found = unless(lambda: s3.get_object(Bucket=self.bucket, Key=self.key), *_NOT_THERE)
        return str(found["Body"].read().decode()) if found else ""

    def write_to_bucket(self) -> None:
        """Write the object. Raises botocore's errors."""
        self.scene.client("s3").put_object(Bucket=self.bucket, Key=self.key, Body=self.text.encode())

    def remove(self) -> None:
        """Remove the file, and then all versions of the object. Raises OpsError and botocore's errors."""
        try:
            self.scene.head_node.run_script(_SCRIPT, "remove", self.path)
        finally:
            remove_versions(self.scene.client("s3"), self.bucket, self.key)


def remove_versions(s3: Any, bucket: str, prefix: str) -> None:
    """Remove all versions of the objects below a prefix, and delete markers. Raises botocore's errors."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        for each in (*page.get("Versions", []), *page.get("DeleteMarkers", [])):
            s3.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])


def links_of(scene: Scene) -> list[dict[str, Any]]:
    """Return the links of the storage stack's file system. Raises botocore's errors."""
    ids = scene.ids(STORAGE_STACK, "AWS::FSx::DataRepositoryAssociation")
    if not ids:
        return []
    answer = scene.client("fsx").describe_data_repository_associations(AssociationIds=ids)
    found: list[dict[str, Any]] = answer["Associations"]
    return found


@contextmanager
def _probe(scene: Scene, policy: str) -> Iterator[Probe]:
    """Yield a probe of the link with an import or export policy, and remove it afterwards."""
    link = next((each for each in links_of(scene) if each.get("S3", {}).get(policy)), None)
    if link is None:
        raise UnseenError(_NO_LINKS)
    bucket, _, prefix = link["DataRepositoryPath"].removeprefix("s3://").partition("/")
    name = f"trainctl-verify-{uuid.uuid4().hex}"
    probe = Probe(
        scene=scene,
        bucket=bucket,
        key=f"{prefix.rstrip('/')}/{name}".lstrip("/"),
        path=f"{load_base().shared_dir}/{link['FileSystemPath'].strip('/')}/{name}",
        text=name,
    )
    try:
        yield probe
    finally:
        try:
            probe.remove()
        except BaseException:
            scene.say(f"not removed: {probe.path}, or {probe.key} of the bucket; remove them by hand")
            raise


def _wait(scene: Scene, what: str, read: Callable[[], str], wanted: str) -> tuple[bool, str]:
    """Wait until a text appears; return if it did, and the time."""
    begin = time.monotonic()
    scene.say(f"waiting for {what}, {MOST_WAIT_S / 60:g} minutes at most")
    while read() != wanted:
        if time.monotonic() - begin >= MOST_WAIT_S:
            return False, f"not within {MOST_WAIT_S:.0f} s"
        time.sleep(_POLL_S)
    return True, f"after {time.monotonic() - begin:.0f} s"


def _links_are_available(scene: Scene) -> tuple[bool, str]:
    states = sorted(each["Lifecycle"] for each in links_of(scene))
    return set(states) <= {"AVAILABLE"}, ", ".join(states) or _NO_LINKS


def _objects_come(scene: Scene) -> tuple[bool, str]:
    with _probe(scene, "AutoImportPolicy") as probe:
        probe.write_to_bucket()
        return _wait(scene, "a small object of the bucket on Lustre", probe.on_lustre, probe.text)


def _files_go(scene: Scene) -> tuple[bool, str]:
    with _probe(scene, "AutoExportPolicy") as probe:
        probe.write_to_lustre()
        return _wait(scene, "a small file of Lustre in the bucket", probe.in_bucket, probe.text)


_COPIES = "The copying: a link is only a record."
CHECKS = (
    Check(
        id="bucket-links",
        claim="Lustre's links to the bucket are available.",
        expected="AVAILABLE",
        not_in_rehearsal=_COPIES,
        look=_links_are_available,
    ),
    Check(
        id="bucket-to-lustre",
        claim="An object that is written to datasets/ of the bucket appears on Lustre. It is removed again.",
        expected=f"within {MOST_WAIT_S:.0f} s (an estimate)",
        not_in_rehearsal=_COPIES,
        look=_objects_come,
        only_on_aws=True,
    ),
    Check(
        id="lustre-to-bucket",
        claim="A file that is written to /fsx/checkpoints appears in the bucket. It is removed again.",
        expected=f"within {MOST_WAIT_S:.0f} s (an estimate)",
        not_in_rehearsal=_COPIES,
        look=_files_go,
        only_on_aws=True,
    ),
)
