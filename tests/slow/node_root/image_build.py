"""The build of a node image on a throw-away machine, with the commands of Image Builder's component."""

import hashlib
import re
import shlex
from typing import Any

import yaml

from tests.slow.node_root.machine import Finished, Machine
from tests.slow.node_root.node import Bucket
from training_cluster.cluster.bundle import build_image_bundle
from training_cluster.flags.cluster import PCLUSTER_VERSION

BUNDLE = "image-bundle.tar.gz"
DOCUMENT = "images/node-image.yaml"


def build_image(machine: Machine, bucket: Bucket, *, timeout_s: int = 600) -> Finished:
    """Run an image build on a machine, and test it as on a new instance.

    Args:
        machine: machine with ParallelCluster's image.
        bucket: bucket that the machine sees; takes the bundle of steps.
    """
    recipe = bucket.settings.family_facts.image_recipe
    bundle = build_image_bundle(recipe=recipe, workloads=bucket.settings.node_workloads, assets=bucket.assets)
    path = bucket.folder / "bucket" / BUNDLE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bundle)
    values = {
        "PclusterVersion": PCLUSTER_VERSION,
        "Recipe": recipe,
        "BundleSource": f"s3://bucket/{BUNDLE}",
        "BundleSha256": hashlib.sha256(bundle).hexdigest(),
    }
    phases = yaml.safe_load((bucket.assets / DOCUMENT).read_text())["phases"]
    commands = [command for phase in phases for step in phase["steps"] for command in _commands(step)]
    script = "\n".join(["exec >&2", *(_filled(command, values) for command in commands)])
    return machine.run("bash", "-euc", script, timeout_s=timeout_s)


def _commands(step: dict[str, Any]) -> list[str]:
    """Return a step of the document as shell commands; ExecuteBash has one for each of its commands."""
    if step["action"] == "S3Download":
        return [f"aws s3 cp '{of['source']}' '{of['destination']}'" for of in step["inputs"]]
    assert step["action"] == "ExecuteBash", step["action"]
    return [shlex.join(["bash", "-ec", command]) for command in step["inputs"]["commands"]]


def _filled(command: str, values: dict[str, str]) -> str:
    return re.sub(r"\{\{ (\w+) \}\}", lambda found: values[found[1]], command)
