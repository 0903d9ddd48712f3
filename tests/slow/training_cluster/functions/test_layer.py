"""The layer of `make layer`: this machine's Python runs the provider from it alone, Lambda's could."""

import json
import platform
import re
import stat
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.slow.account import Account
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions.built_layer import PYTHON
from training_cluster.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PROVIDER = ROOT / "assets" / "cluster_provider"
LAMBDA_LIMIT = 250 * 2**20
PROVIDER_ROOM = 2**20
X86_64 = 62  # e_machine of ELF

# As Lambda: one process, the handlers called one after the other, until the cluster is there and gone.
_DRIVER = """
import json, shutil, sys, time
import handler
event = json.load(sys.stdin)
for event["RequestType"] in ("Create", "Delete"):
    event["RequestId"] = event["RequestType"]
    event |= handler.on_event(event, None)
    deadline = time.monotonic() + 120
    while not (answer := handler.is_complete(event, None))["IsComplete"]:
        assert time.monotonic() < deadline, event["RequestType"]
        time.sleep(0.5)
    print(event["RequestType"] + ":", json.dumps(answer))
files = [m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
import pcluster.utils
version = pcluster.utils.get_installed_version()
print("used:", json.dumps({"files": files, "node": shutil.which("node"), "version": version}))
"""


@pytest.fixture(scope="module")
def layers() -> dict[str, Path]:
    """Build the archives for Lambda's Python and this machine's, in parallel, unless they exist."""
    builder = [sys.executable, "-m", "tools.build_layer", "--python"]
    builds = {
        python: subprocess.Popen([*builder, python], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for python in {PYTHON, HERE}
    }
    said = {python: build.communicate()[0].strip() for python, build in builds.items()}
    assert [build.returncode for build in builds.values()] == [0] * len(builds)
    return {python: Path(archive) for python, archive in said.items()}


@pytest.fixture
def for_lambda(layers: dict[str, Path]) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(layers[PYTHON]) as archive:
        yield archive


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack a layer with the executable bits, as Lambda does."""
    with zipfile.ZipFile(archive) as layer:
        for entry in layer.infolist():
            Path(layer.extract(entry, folder)).chmod(stat.S_IMODE(entry.external_attr >> 16))
    return folder


def _texts(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Read a file of every package's dist-info, by package."""
    found = [entry for entry in archive.namelist() if entry.endswith(f".dist-info/{name}")]
    return {entry.split("/")[1]: archive.read(entry).decode() for entry in found}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the layer is one for x86_64")
def test_provider_runs_from_layer_alone(layers: dict[str, Path], account: Account, tmp_path: Path) -> None:
    layer = _unpack(layers[HERE], tmp_path / "opt")
    account.client("logs").create_log_group(logGroupName="from-layer")
    # No package of this machine's and no other Node: without site, and with the layer as the only PATH.
    environment = account.address.client_variables() | {
        "PATH": str(layer / "bin"),
        "PYTHONPATH": f"{PROVIDER}:{layer / 'python'}",
        "PROGRESS_PARAMETER": "/from-layer",
        "PROGRESS_LOG_GROUP": "from-layer",
        "LOGS_BUCKET": "from-layer",
    }
    properties = {"ClusterName": "from-layer", "ClusterConfiguration": json.dumps(account.network.config())}
    stack = "arn:aws:cloudformation:us-east-1:123456789012:stack/Ours/00000000"
    done = subprocess.run(
        [Path(sys.base_prefix, "bin", f"python{HERE}"), "-S", "-B", "-c", _DRIVER],
        input=json.dumps({"StackId": stack, "ResourceProperties": properties}),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert json.loads(said["Create"])["Data"]["HeadNodeInstanceId"].startswith("i-")
    assert account.status("from-layer") == "NONE"
    used = json.loads(said["used"])
    assert (used["node"], used["version"]) == (str(layer / "bin" / "node"), PCLUSTER_VERSION)
    assert str(layer / "python" / "pcluster" / "lib" / "__init__.py") in used["files"]
    own = (f"{PROVIDER}/", f"{layer}/", f"{sysconfig.get_path('stdlib')}/")
    assert [each for each in used["files"] if not each.startswith(own) or "site-packages" in each] == []


def test_every_binary_is_for_lambdas_machine(for_lambda: zipfile.ZipFile) -> None:
    binaries = {
        name: content
        for name in for_lambda.namelist()
        if (content := for_lambda.read(name)).startswith(b"\x7fELF")
    }
    suffixes = (f".cpython-{PYTHON.replace('.', '')}-x86_64-linux-gnu.so", ".abi3.so")
    assert "bin/node" in binaries
    assert len(binaries) > 10
    for name, content in binaries.items():
        assert int.from_bytes(content[18:20], "little") == X86_64, name
        assert name == "bin/node" or name.endswith(suffixes), name
        glibc = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", content)]
        assert max(glibc) <= 34, name


def test_no_package_is_missing_on_lambda(for_lambda: zipfile.ZipFile) -> None:
    """The lock was made by another Python: a marker could ask for more on this one."""
    packages = [message_from_string(text) for text in _texts(for_lambda, "METADATA").values()]
    assert len(packages) > 90
    versions = {canonicalize_name(package["Name"]): package["Version"] for package in packages}
    python = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "extra": ""}
    on_lambda = python | {"sys_platform": "linux", "platform_machine": "x86_64"}
    environment = {name: str(value) for name, value in (default_environment() | on_lambda).items()}
    for package in packages:
        for text in package.get_all("Requires-Dist", []):
            wanted = Requirement(text)
            if not wanted.marker or wanted.marker.evaluate(environment):
                version = versions.get(canonicalize_name(wanted.name))
                assert version and wanted.specifier.contains(version), f"{package['Name']}: {text}"


def test_lambda_takes_the_layer_with_the_provider(for_lambda: zipfile.ZipFile) -> None:
    entries = for_lambda.infolist()
    assert sum(entry.file_size for entry in entries) < LAMBDA_LIMIT - PROVIDER_ROOM
    assert {entry.filename.split("/")[0] for entry in entries} == {"bin", "python"}
    assert not [entry.filename for entry in entries if "__pycache__" in entry.filename]
    assert for_lambda.getinfo("bin/node").external_attr >> 16 & 0o111 == 0o111
    assert sum(path.stat().st_size for path in PROVIDER.glob("*.py")) < PROVIDER_ROOM
