"""The scripts that nodes run, packed as one bundle: a node has all of a version or none. No CDK here."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

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
