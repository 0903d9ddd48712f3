"""The files of a report: checked before anything is asked, written whole or not at all."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.report.record import Run
from ops.usage import OpsError, UsageError


@dataclass(frozen=True, kw_only=True)
class Files:
    """What is to be written."""

    html: Path | None
    png: Path | None


def check_files(*, html: Path | None, png: Path | None, force: bool) -> Files:
    """Refuse what would not do. Raises UsageError."""
    for option, file in (("--html", html), ("--png", png)):
        if file is None:
            continue
        if file.is_dir():
            raise UsageError(
                f"report: {file} is a folder.\n  type:   {option} {file / 'report'}.{option[2:]}"
            )
        if not file.parent.is_dir():
            raise UsageError(f"report: there is no folder {file.parent}.\n  type:   mkdir -p {file.parent}")
        if file.exists() and not force:
            raise UsageError(
                f"report: {file} is there already.\n  type:   --force to overwrite it, or another name"
            )
    if html is not None and html == png:
        raise UsageError("report: --html and --png name the same file.")
    return Files(html=html, png=png)


def write_files(runs: Sequence[Run], files: Files) -> None:
    """Write them. Raises OpsError where this machine lacks what that takes, or refuses it."""
    if files.html:
        from ops.report.page import render_page  # noqa: PLC0415 (only where it is wanted)

        _write(files.html, render_page(runs).encode())
    if files.png:
        from ops.report.picture import draw  # noqa: PLC0415 (matplotlib takes a second to load)

        _write(files.png, draw(runs))


def _write(file: Path, content: bytes) -> None:
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        raise OpsError(f"report: {file} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def offer(asked: Sequence[str], runs: Sequence[Run], files: Files, cluster_name: str) -> Iterator[str]:
    """Where the files are, or what to type for them."""
    name = "-beside-".join(f"{run.workload}-{run.run}" for run in runs[:2])
    command = [
        "trainctl",
        "report",
        *asked,
        *(["--cluster", cluster_name] if cluster_name != "training" else []),
    ]
    for option, what, file in (("--html", "page", files.html), ("--png", "picture", files.png)):
        if file:
            yield f"{what + ':':9}{file}"
        else:
            yield f"As a {what}: {shlex.join([*command, option, f'{name}.{option[2:]}'])}"
