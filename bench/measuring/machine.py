"""The machine on which the figures were measured."""

from __future__ import annotations

import datetime
import platform
import shutil
import subprocess
from importlib import metadata
from typing import Any

import psutil

_PACKAGES = ("aws-cdk-lib", "constructs", "pydantic", "boto3")


def describe_machine() -> dict[str, Any]:
    """Return date, processor, memory, GPU and versions."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "threads": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpu": _gpu(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    done = subprocess.run(["lscpu"], capture_output=True, text=True, check=False)
    names = [
        line.partition(":")[2].strip() for line in done.stdout.splitlines() if line.startswith("Model name")
    ]
    return names[0] if names else platform.machine()


def _gpu() -> str | None:
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None
