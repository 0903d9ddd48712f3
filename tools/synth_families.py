"""`python -m tools.synth_families FOLDER`: write the templates of every family, for checks of templates.

A finding of cdk-nag or of CDK's own validation that is not acknowledged ends it; tools/nag.py reads the
reports. Network and storage are the same for all (a test compares them), so they are written once.
"""

import json
import sys
from pathlib import Path

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from stacks.composition import add_stacks
from training_cluster.catalog.families import family_names
from training_cluster.rules.context import read_settings

# Clusters in addition to one per family: one with every addition of a flag, and some that add less.
OTHERS = {
    "everything": {
        **{"cpu_queue": "on", "login_nodes": "2", "home": "efs", "accounting": "new", "endpoints": "private"},
        **{"efs_mibps": "64", "fsx_efa": "on", "fsx_gib": "19200", "fsx_mbps_per_tib": "250"},
        **{"ssh_from": "0.0.0.0/0", "ssh_from_anywhere": "yes"},
        **{"alarm_email": "somebody@example.com", "budget_usd": "1000"},
        "metrics": "amp",
        "metrics_workspace": "arn:aws:aps:us-east-1:123456789012:workspace/"
        "ws-01234567-0123-4567-89ab-0123456789ab",
        "job_emails": "ann=ann@example.com,team@example.com",
        "alert_webhook_secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:webhook-AbCdEf",
        **{"image": "build", "image_rebuild": "monthly"},
    },
    "own-network": {
        "vpc_id": "vpc-0123456789abcdef0",
        "public_subnet_id": "subnet-0123456789abcdef0",
        "private_subnet_id": "subnet-0123456789abcdef1",
        "bucket_name": "training-data",
        "fsx_type": "scratch2",
        "image": "ami-0123456789abcdef0",
    },
    "people": {
        "users": "tests/unit/stacks/people/users.yaml",
        "node_policies": "arn:aws:iam::123456789012:policy/team",
        "write_buckets": "out/runs",
        "job_emails": "team@example.com",
    },
    "own-storage": {
        "bucket_name": "training-data",
        "fsx_id": "fs-0123456789abcdef0",
        "efs_id": "fs-0123456789abcdef1",
    },
}


def synth(folder: Path, name: str, flags: dict[str, str]) -> None:
    """Synthesise the app with flags into a folder of its own."""
    context = json.loads(Path("cdk.json").read_text())["context"]
    app = cdk.App(context=context, outdir=str(folder / name), analytics_reporting=False)
    add_stacks(app, read_settings(flags))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


def main(folder: Path) -> None:
    """Synthesise every family, and apps with other stacks."""
    for name, flags in OTHERS.items():
        synth(folder, name, flags)
    for name in family_names():
        synth(folder, name, {"family": name})
        for same in ("NetworkStack", "StorageStack"):
            if name != family_names()[0]:
                (folder / name / f"{same}.template.json").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
