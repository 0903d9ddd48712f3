"""Every workload's packages exist for each Python that makes its environment: asks the package index."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from packaging.requirements import Requirement

from tools.workload_locks import pythons_of, requirement_files
from training_cluster.catalog.versions import load_versions
from training_cluster.paths import TRAINING

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

# Nodes have 3.10 (Ubuntu 22.04) or 3.12 (Ubuntu 24.04; Amazon Linux 2023 by step 20); rehearsals have any.
PYTHONS = sorted(
    set(re.findall(r"python(3\.\d+)", (TRAINING / "environment.sh").read_text(encoding="utf-8"))),
    key=lambda version: int(version.partition(".")[2]),
)
# Amazon Linux 2023's glibc, the oldest of all nodes.
GLIBC = (2, 34)
PLATFORMS = [f"manylinux_{GLIBC[0]}_{minor}_x86_64" for minor in range(5, GLIBC[1] + 1)] + [
    "manylinux2014_x86_64"
]
# They have no wheels: what compiles them is in install.sh and 48-build-megatron.sh.
SOURCE_ONLY = {"fairseq-fixed", "transformer-engine-torch"}
# From AWS's index for Neuron; packages of these names on PyPI are empty.
OF_NEURON = {"torch-neuronx", "neuronx-cc", "libneuronxla", "nki"}
# Asks pip for one package after another in one process, since most of the time is its start.
_ASK = """
import contextlib, io, json, sys
from pip._internal.cli.main import main
for question in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["index", "versions", "--json", *question])
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
_PROCESSES = 4


def pins_of(python: str) -> Iterator[tuple[str, str]]:
    """The packages that pip installs for one Python, as (where, NAME==VERSION)."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": "x86_64",
    }
    for file in requirement_files():
        text = file.read_text(encoding="utf-8")
        for line in text.splitlines() if python in pythons_of(text) else ():
            if line and not line.startswith("#"):
                requirement = Requirement(line)
                if not requirement.marker or requirement.marker.evaluate(environment):
                    yield f"{file.parent.name}/{file.name}", f"{requirement.name}{requirement.specifier}"
    for file in TRAINING.glob("*/install.sh"):
        for name, version in re.findall(r"\b([a-z][\w-]*)==(\d[\w.]*)", file.read_text(encoding="utf-8")):
            if name not in OF_NEURON:
                yield f"{file.parent.name}/{file.name}", f"{name}=={version}"
    for name, pin in load_versions().pins.items():
        if pin.lookup and pin.lookup.startswith("pypi:") and not pin.index:
            yield f"versions.yaml: {name}", f"{pin.lookup.removeprefix('pypi:')}=={pin.version}"


def question(name: str, python: str) -> list[str]:
    """Return the arguments with which `pip index versions` lists what it would install on a node."""
    platforms = [f"--platform={platform}" for platform in PLATFORMS]
    kind = [] if name in SOURCE_ONLY else ["--only-binary=:all:"]
    return [name, f"--python-version={python}", *platforms, *kind]


def versions_of(names: Sequence[str], python: str) -> dict[str, list[str]]:
    """Return the versions of each package that pip would install on a node with this Python."""
    questions = json.dumps([question(name, python) for name in names])
    done = subprocess.run([sys.executable, "-c", _ASK], input=questions, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {}
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        code, said, complaint = json.loads(line)
        assert code == 0 or "No matching distribution" in complaint, complaint
        found[name] = [] if code else json.loads(said)["versions"]
    return found


def test_every_python_that_makes_environments_is_known() -> None:
    assert {"3.10", "3.12"} <= set(PYTHONS)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_pinned_package_can_be_installed(python: str) -> None:
    pins = list(pins_of(python))
    assert {name.partition("/")[0] for name, _ in pins} >= {
        "gpt2",
        "roberta",
        "gpt2-megatron",
        "bert-trainium",
    }
    names = sorted({pin.partition("==")[0] for _, pin in pins})
    found: dict[str, list[str]] = {}
    with ThreadPoolExecutor(_PROCESSES) as threads:
        shares = [names[i::_PROCESSES] for i in range(_PROCESSES)]
        for share in threads.map(lambda share: versions_of(share, python), shares):
            found |= share
    missing = [
        f"{where}: {pin}"
        for where, pin in pins
        if pin.partition("==")[2] not in found[pin.partition("==")[0]]
    ]
    assert missing == [], f"not for Python {python} on Linux with glibc {GLIBC[0]}.{GLIBC[1]}"
