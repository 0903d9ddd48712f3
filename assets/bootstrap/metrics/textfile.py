"""Text files of metrics in Prometheus's format, which node_exporter's textfile collector serves.

Runs on Python 3.9 and later, with only the standard library.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from names import NAMES


class Sample(NamedTuple):
    """One value of a metric of names.py."""

    name: str
    value: float
    labels: Mapping[str, str] = {}


Reader = Callable[[], Iterable[Sample]]


def render(samples: Iterable[Sample]) -> str:
    """Render samples; samples of one metric follow each other, as the format requires."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.name, []).append(sample)
    lines = []
    for name, group in groups.items():
        kind, explanation = NAMES[name]
        lines += [f"# HELP {name} {explanation}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(sample.labels)} {sample.value!r}" for sample in group]
    return "".join(f"{line}\n" for line in lines)


def replace(file: Path, text: str) -> None:
    """Write a file, which everybody may read, in one rename: nobody reads half of it."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o644)
    fresh.rename(file)


def write_all(folder: Path, readers: Mapping[str, Reader]) -> bool:
    """Write a file for each reader; return False if one failed.

    If a reader fails, only its own file is removed, since an old value would look like a new one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about: list[Sample] = []
    for name, reader in readers.items():
        started = time.monotonic()
        try:
            replace(folder / f"{name}.prom", render(reader()))
            is_read = True
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            (folder / f"{name}.prom").unlink(missing_ok=True)
            is_read = False
        about.append(Sample("metrics_reader_success", float(is_read), {"reader": name}))
        about.append(Sample("metrics_reader_seconds", time.monotonic() - started, {"reader": name}))
    replace(folder / "readers.prom", render(about))
    return all(sample.value for sample in about if sample.name == "metrics_reader_success")


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    # A user's name may have bytes that are not UTF-8, and node_exporter then drops the whole file.
    clean = value.encode("utf-8", errors="replace").decode()
    return clean.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
