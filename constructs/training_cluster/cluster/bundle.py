"""Bundle of the scripts that nodes run: a node has all scripts of a version or none. It imports no CDK."""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from training_cluster.catalog.families import head_node_size
from training_cluster.catalog.steps import budget_s, image_steps, start_steps
from training_cluster.catalog.versions import render_versions
from training_cluster.catalog.workloads import environments_budget_s
from training_cluster.cluster.job_environment import render_job_environments, render_links
from training_cluster.cluster.nodes import Rendered
from training_cluster.cluster.queues import types_of
from training_cluster.flags.monitoring import remote_write_url
from training_cluster.flags.settings import Settings
from training_cluster.overrides.file import read_overrides, upload_key
from training_cluster.paths import ASSETS
from training_cluster.queues.queue import BUILD, Queue
from training_cluster.stack_names import rules_topic
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

BUNDLED = ("bootstrap", "training")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


def bootstrap_budget_s(settings: Settings) -> int:
    """Return the most seconds that our steps may take on a compute node of any queue."""
    return max(_start_budget_s(queue, settings.metrics) for queue in settings.all_queues)


def _start_budget_s(queue: Queue, metrics: str) -> int:
    has_built_image = queue.image == BUILD
    steps = start_steps(
        node="ComputeFleet",
        recipe=queue.image_recipe,
        metrics=metrics,
        has_built_image=has_built_image,
    )
    return budget_s(steps, environments_s=0 if has_built_image else environments_budget_s(queue.workloads))


def _files(assets: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and paths of the shipped files: none is hidden or compiled code."""
    for folder in BUNDLED:
        for path in sorted((assets / folder).rglob("*")):
            name = path.relative_to(assets)
            if path.is_file() and not any(
                part == "__pycache__" or part.startswith(".") for part in name.parts
            ):
                yield str(name), path


def build_bundle(*, settings: Settings, config: Rendered, assets: Path = ASSETS) -> bytes:
    """Pack everything that the nodes of a cluster run: scripts, pins and the partitions' environments.

    Args:
        config: the final cluster config; the bundle is the same whatever ids and checksum it has.
    """
    files = {name: path.read_bytes() for name, path in _files(assets)}
    for partition, text in render_job_environments(config, settings).items():
        files[f"partitions/{partition}.env"] = text.encode()
    files["links"] = render_links(settings).encode()
    files["versions.env"] = render_versions().encode()
    if settings.users:
        files |= render_users(read_users(settings.users), home=settings.home)
    if "DirectoryService" in config:
        files["directory"] = b""
    files["metrics.env"] = render_metrics(settings).encode()
    files["prices"] = render_prices(config).encode()
    return _pack(files, executables(assets))


def render_metrics(settings: Settings) -> str:
    """Render the settings of assets/bootstrap/steps/79 to 88 as `export NAME=value` lines."""
    variables = {
        "METRICS": settings.metrics,
        "METRICS_WORKSPACE": remote_write_url(settings.metrics_workspace),
        "METRICS_TOPIC": rules_topic(settings.cluster_name) if settings.alarm_email else "",
        "METRICS_WEBHOOK_SECRET": settings.alert_webhook_secret or "",
        "METRICS_BUDGET_USD": settings.budget_usd or "",
        "TOPOLOGY": settings.topology or "",
    }
    return "".join(f"export {name}='{value}'\n" for name, value in variables.items())


def render_prices(config: Rendered) -> str:
    """Render lines of `PARTITION RESOURCE USD-AN-HOUR`, list prices on demand; the head node is `head -`.

    A resource of several instance types gets the price of the most expensive one. An unknown
    price counts as 0.
    """
    head = head_node_size(config["HeadNode"]["InstanceType"])
    found = {("head", "-"): (head.usd_per_hour or 0.0) if head else 0.0}
    for queue in config["Scheduling"]["SlurmQueues"]:
        for resource in queue["ComputeResources"]:
            usd = [each.size.usd_per_hour or 0.0 for each in types_of(resource)]
            found[queue["Name"], resource["Name"]] = max(usd, default=0.0)
    return "".join(f"{queue} {resource} {usd:g}\n" for (queue, resource), usd in found.items())


def build_uploads(
    *, settings: Settings, config: Rendered, assets: Path = ASSETS
) -> tuple[str, dict[str, bytes]]:
    """Build all that nodes fetch from the bucket.

    Returns:
        The bundle's SHA-256 in hex, and the files by their keys below bootstrap_prefix(): the bundle,
        the script that fetches it, and the user's own scripts.
    """
    bundle = build_bundle(settings=settings, config=config, assets=assets)
    sha256 = hashlib.sha256(bundle).hexdigest()
    own = read_overrides(settings.overrides).scripts().values() if settings.overrides else ()
    return sha256, {
        # Named by its content: a node that starts in the middle of an update finds the bundle that its
        # cluster config names, the old one or the new one.
        f"bundle-{sha256}.tar.gz": bundle,
        "bootstrap.sh": (assets / "bootstrap" / "bootstrap.sh").read_bytes(),
        **{upload_key(script): script.read_bytes() for script in own},
    }


def build_image_bundle(*, recipe: str, workloads: Sequence[str], assets: Path = ASSETS) -> bytes:
    """Pack the content of an image and nothing else: an image is built again when this changes.

    Args:
        recipe: gpu, volta, neuron or cpu.
        workloads: names of the workloads whose environments the image has.
    """
    steps = image_steps(recipe, assets)
    files = {"bootstrap/run-steps.sh": (assets / "bootstrap" / "run-steps.sh").read_bytes()}
    for step in steps:
        files[f"bootstrap/steps/{step.path.name}"] = step.path.read_bytes()
        for pattern in step.reads:
            for path in sorted(assets.glob(pattern)):
                name = str(path.relative_to(assets))
                of_workload = re.match(r"training/([^/]+)/", name)
                if of_workload is None or of_workload[1] in workloads:
                    files[name] = path.read_bytes()
    named = {word for step in steps for word in _VARIABLE.findall(step.text)}
    files["versions.env"] = "".join(
        line
        # All recipes' pins, as at a node's start: a step's stamp covers the pins that it names.
        for line in render_versions().splitlines(keepends=True)
        if named.intersection(_VARIABLE.findall(line))
    ).encode()
    files["image.env"] = f"export WORKLOADS='{' '.join(workloads)}'\n".encode()
    return _pack(files, executables(assets))


def executables(assets: Path = ASSETS) -> set[str]:
    """Return the names of the shipped files that are executable."""
    return {name for name, path in _files(assets) if path.stat().st_mode & 0o100}


def _pack(files: Mapping[str, bytes], executable: Collection[str]) -> bytes:
    """Pack files into a .tar.gz whose bytes depend on their content alone."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if name in executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
