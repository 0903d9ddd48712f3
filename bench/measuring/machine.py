"""The machine on which the figures were measured."""

import datetime
import platform
import re
import shutil
import subprocess
from importlib import metadata
from typing import Any

import psutil

_PACKAGES = ("aws-cdk-lib", "constructs", "pydantic", "boto3")


def describe_machine() -> dict[str, Any]:
    """Return date, processor, memory, GPU and versions."""
    processor = re.search(r"^Model name:\s*(.+?)\s*$", _output("lscpu"), re.MULTILINE)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": processor[1] if processor else platform.machine(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "threads": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpu": next(
            iter(_output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()), None
        ),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
    }


def _output(*command: str) -> str:
    """Return the output of a program; empty if it is not installed or fails."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout
