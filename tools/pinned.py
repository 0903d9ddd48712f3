"""The pinned versions of this repository: versions.yaml, requirement files, package.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training_cluster.catalog.versions import load_versions
from training_cluster.paths import ROOT

REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-pcluster.txt",
    "requirements-docs.txt",
)
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]+\])?==([^\s;]+)")
# Reasons why packages must not follow the newest version. versions.yaml has its own.
REASONS = {
    "aws-parallelcluster": "an AMI and a cluster belong to one version: a new one is a new cluster",
    "constructs": "the major version that aws-cdk-lib asks for",
    "aws-cdk": "npm's newest by tag is an old build; 2.1147 or newer for this aws-cdk-lib",
    "moto": "its hooks are no public API (tests/unit/rehearsal/local_aws/emulators/test_hooks.py)",
    "ministack": "its hooks are no public API (tests/unit/rehearsal/local_aws/emulators/test_hooks.py)",
    "plotext": "6.0 is another library under the same name",
    "torch": "with versions.yaml's megatron_torch, for which extensions are compiled",
    "numpy": "the newest for each Python version",
    "transformers": "5.21 and later need Python 3.11, Ubuntu 22.04 has 3.10",
    "regex": "later ones need Python 3.11, Ubuntu 22.04 has 3.10",
}
CEILINGS = {"constructs": "10", "aws-cdk": "2", "plotext": "5", "transformers": "5.20", "regex": "2026.9"}


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """One version that this repository names."""

    name: str
    version: str
    where: str
    """File, relative to the repository."""
    lookup: str
    """Source: pypi:NAME, npm:NAME or github:OWNER/REPOSITORY; empty if no program can ask."""
    reason: str
    """Reason against a newer version; empty if there is none."""
    ceiling: str = ""
    """Prefix of the newest allowed version."""
    noted: str = ""
    """Newest version at the time of the pin, if no program can ask."""


def find_all(root: Path = ROOT) -> list[Pinned]:
    """Find all pinned versions, file by file."""
    return [*_of_nodes(root), *_of_python(root), *_of_node_js(root)]


def _of_nodes(root: Path) -> Iterator[Pinned]:
    file = root / "cluster_configs" / "versions.yaml"
    for name, pin in load_versions(file).pins.items():
        yield Pinned(
            name=name,
            version=pin.version,
            where=str(file.relative_to(root)),
            lookup=pin.lookup or "",
            reason=pin.why,
            ceiling=pin.ceiling or "",
            noted=(pin.newest or "").split(" ")[0],
        )


def _of_python(root: Path) -> Iterator[Pinned]:
    files = [root / name for name in REQUIREMENTS]
    for file in [*files, *sorted((root / "assets" / "training").glob("*/requirements.txt"))]:
        for line in file.read_text().splitlines():
            if match := _REQUIREMENT.match(line):
                yield Pinned(
                    name=match[1],
                    version=match[2],
                    where=str(file.relative_to(root)),
                    lookup=f"pypi:{match[1]}",
                    reason=REASONS.get(match[1].lower(), ""),
                    ceiling=CEILINGS.get(match[1].lower(), ""),
                )


def _of_node_js(root: Path) -> Iterator[Pinned]:
    listed = json.loads((root / "package.json").read_text())
    for kind in ("dependencies", "devDependencies"):
        for name, version in listed.get(kind, {}).items():
            yield Pinned(
                name=name,
                version=version,
                where="package.json",
                lookup=f"npm:{name}",
                reason=REASONS.get(name, ""),
                ceiling=CEILINGS.get(name, ""),
            )
