"""ImageStack alone, with the names of a network and a bucket."""

import json
from functools import cache
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from stacks.image_stack import ImageStack
from training_cluster.network.network import Network
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings
from training_cluster.storage.storage import SharedStorage

NETWORK: dict[str, Any] = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
    "node_security_group_id": "sg-0123456789abcdef0",
}
BUCKET = "training-data"


def app(*, outdir: str | None = None, more_context: dict[str, Any] | None = None) -> cdk.App:
    """Make an app with the feature flags of cdk.json."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return cdk.App(context=context | (more_context or {}), outdir=outdir, analytics_reporting=False)


def add_image_stack(whole: cdk.App, **flags: str) -> ImageStack:
    """Add the stack for flags, image=build among them, to an app."""
    others = cdk.Stack(whole, "Others")
    cdk.CfnWaitConditionHandle(others, "Anything")  # a stack of nothing is none
    storage = SharedStorage(
        bucket=s3.Bucket.from_bucket_name(others, "Bucket", BUCKET), lustre_id="fs-1", efs_id="fs-2"
    )
    settings = read_settings({"image": "build", **flags})
    network = Network(others, "Network", **NETWORK)
    return ImageStack(whole, "ImageStack", settings=settings, network=network, storage=storage)


def image_template(**flags: str) -> Template:
    """Return the stack's template, synthesised once for the same flags."""
    return _template(tuple(sorted(flags.items())))


@cache
def _template(flags: tuple[tuple[str, str], ...]) -> Template:
    return Template.from_stack(add_image_stack(app(), **dict(flags)))


def properties(template: Template, kind: str) -> dict[str, Any]:
    """Return the properties of the only resource of a type."""
    (found,) = template.find_resources(kind).values()
    given: dict[str, Any] = found["Properties"]
    return given
