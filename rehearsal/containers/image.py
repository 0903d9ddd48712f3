"""The image of a rehearsal: the distribution's base system with a workload's packages installed in it."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from rehearsal.containers.base import NoRootError, make_base
from rehearsal.problems import RehearsalError

# Enroot's defaults (ENROOT_SQUASH_OPTIONS): compression hardly shrinks Python packages and slows unpacking.
_SQUASH = ("-comp", "lzo", "-noD", "-no-xattrs", "-all-root", "-no-progress", "-quiet", "-exit-on-error")
# Like an NVIDIA image, it sets variables. The job sets MAX_STEPS too, but not IMAGE_OF.
_ENVIRONMENT = "PATH=/usr/local/bin:/usr/bin:/bin\nMAX_STEPS=7\nIMAGE_OF=the rehearsal\n"


def make_image(folder: Path, *, environment: Path | None, say: Callable[[str], None]) -> Path:
    """Make the image unless it exists; return its squashfs file.

    Args:
        folder: takes the image.
        environment: Python environment whose packages are installed in the image; None installs none.
        say: called with a line before each slow step.

    Raises:
        NoRootError: no image can be made here; the message has the reason.
        RehearsalError: it could not be made, or the environment's Python is not the distribution's.
    """
    if not shutil.which("mksquashfs"):
        raise NoRootError("mksquashfs is missing here. On Debian or Ubuntu type: make setup")
    base = make_base(say)
    packages = None if environment is None else _packages(environment, base)
    made_from = f"{Path(__file__).read_text()}\n{base.name}\n{environment}\n"
    if environment is not None and (stamp := environment / "requirements.sha256").exists():
        made_from += stamp.read_text()
    name = environment.name if environment else "python"
    image = folder / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}.sqsh"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w", encoding="utf-8") as lock:
        # Another rehearsal or test may make it now.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.exists():
            say(f"making the container image {image.name} (a minute, once)")
            for older in folder.glob(f"{name}-*"):
                shutil.rmtree(older) if older.is_dir() else older.unlink()
            _squash(base, packages, image)
    return image


def _packages(environment: Path, base: Path) -> tuple[Path, str]:
    """Return the folder of the environment's packages, and the path of that folder in the base system."""
    found = sorted(environment.glob("lib/python3.*/site-packages"))
    if not found:
        raise RehearsalError(f"{environment} is not a Python environment. Remove it, then rehearse again.")
    version = found[0].parent.name
    if not (base / "usr" / "bin" / version).exists():
        raise RehearsalError(
            f"{environment} was made with {version}, but this distribution has no {version}, so an image "
            f"cannot have its packages.\n  type: rm -r {environment}; make rehearse CONTAINER=1"
        )
    return found[0], f"usr/local/lib/{version}/dist-packages"


def _squash(base: Path, packages: tuple[Path, str] | None, image: Path) -> None:
    """Write the image from hard links to the base system and the packages; changed files are written anew."""
    staging = image.with_suffix(".staging")
    partial = image.with_suffix(".partial")
    try:
        shutil.copytree(base, staging, symlinks=True, copy_function=_link)
        if packages:
            shutil.rmtree(staging / packages[1], ignore_errors=True)
            shutil.copytree(packages[0], staging / packages[1], symlinks=True, copy_function=_link)
        # Only root can unpack devices. Enroot leaves them out too, since a container uses the node's.
        shutil.rmtree(staging / "dev")
        (staging / "dev").mkdir()
        for name, text in (("environment", _ENVIRONMENT), ("image-of-the-rehearsal", "")):
            (staging / "etc" / name).unlink(missing_ok=True)
            (staging / "etc" / name).write_text(text, encoding="utf-8")
        said = subprocess.run(
            ["mksquashfs", staging, partial, *_SQUASH], capture_output=True, text=True, check=False
        )
        if said.returncode:
            raise RehearsalError(f"The image {image} could not be made: {said.stderr.strip()}")
        partial.rename(image)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        partial.unlink(missing_ok=True)


def _link(source: str, target: str) -> str:
    """Link a file, or copy it to another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
