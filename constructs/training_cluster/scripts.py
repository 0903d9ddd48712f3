"""The scripts that nodes run, as one bundle in the bucket: a node has all of a version or none."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from training_cluster.job_environment import render_job_environments, render_links
from training_cluster.problems import ConfigurationError
from training_cluster.settings import Settings

ASSETS = Path(__file__).resolve().parents[2] / "assets"
BUNDLED = ("bootstrap", "training")

# In the header of a step: what it may take at worst, on any node.
_BUDGET = re.compile(r"^# Budget: (\d+) s\b", re.MULTILINE)


def bootstrap_budget_s(assets: Path = ASSETS) -> int:
    """Seconds that the bootstrap's steps may take together: each step's header states its own.

    Raises:
        ConfigurationError: a step without `# Budget: N s`.
    """
    total = 0
    for step in sorted((assets / "bootstrap" / "steps").glob("*.sh")):
        stated = _BUDGET.search(step.read_text())
        if not stated:
            raise ConfigurationError(f"{step.name}: its header states no budget; add `# Budget: 30 s`")
        total += int(stated[1])
    return total


def _files(assets: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of what ships: no hidden file or folder, and no compiled code."""
    for folder in BUNDLED:
        for path in sorted((assets / folder).rglob("*")):
            name = path.relative_to(assets)
            if path.is_file() and not any(
                part == "__pycache__" or part.startswith(".") for part in name.parts
            ):
                yield str(name), path


def build_bundle(*, settings: Settings, assets: Path = ASSETS) -> bytes:
    """Pack scripts and partitions' environments into a .tar.gz whose bytes depend on content alone."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in _files(assets):
            _add(archive, name, path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
        for partition, text in render_job_environments(settings).items():
            _add(archive, f"partitions/{partition}.env", text.encode(), executable=False)
        _add(archive, "links", render_links(settings).encode(), executable=False)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, executable: bool) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(content))


class Scripts(Construct):
    """Ships bootstrap.sh, bundle.tar.gz and its checksum to `s3://<bucket>/<prefix>/`.

    Attributes:
        sha256: hex digest of the bundle; another digest is what makes an update run the scripts again.
        deployment: what the cluster has to wait for.
    """

    def __init__(
        self, scope: Construct, id_: str, *, bucket: s3.IBucket, prefix: str, settings: Settings
    ) -> None:
        super().__init__(scope, id_)
        bundle = build_bundle(settings=settings)
        self.sha256 = hashlib.sha256(bundle).hexdigest()
        with tempfile.TemporaryDirectory() as folder:  # CDK copies the asset into cdk.out at once
            staging = Path(folder)
            (staging / "bundle.tar.gz").write_bytes(bundle)
            (staging / "bundle.tar.gz.sha256").write_text(f"{self.sha256}  bundle.tar.gz\n")
            shutil.copy(ASSETS / "bootstrap" / "bootstrap.sh", staging)
            self.deployment = s3_deployment.BucketDeployment(
                self,
                "Deployment",
                sources=[s3_deployment.Source.asset(folder)],
                destination_bucket=bucket,
                destination_key_prefix=prefix,
                prune=False,
            )
