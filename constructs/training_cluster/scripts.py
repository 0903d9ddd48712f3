"""The bundle of scripts in the bucket, beside the script that fetches it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from training_cluster.bundle import ASSETS, build_bundle
from training_cluster.settings import Settings


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
        # By name: a bucket that CDK knows as its own gets a tag for each prefix, and StorageStack would
        # change with every cluster.
        target = s3.Bucket.from_bucket_name(self, "Target", bucket.bucket_name)
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
                destination_bucket=target,
                destination_key_prefix=prefix,
                prune=False,
            )
