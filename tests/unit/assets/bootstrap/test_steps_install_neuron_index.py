"""bert-trainium's packages from AWS's own index, when another index has packages of the same names."""

import re
import subprocess

import pytest
from packaging.markers import Marker

from tests.unit.assets.bootstrap.step_machine import Machine, succeeds

OF_AWS = ("torch-neuronx", "neuronx-cc", "libneuronxla", "nki")
AWSS_INDEX = "https://pip.repos.neuron.amazonaws.com"


@pytest.mark.slow
def test_no_package_of_awss_index_comes_from_another(machine: Machine) -> None:
    folder = machine.bundle / "training" / "bert-trainium"
    install = folder / "install.sh"
    pins = dict(re.findall(r"\b([a-z][a-z-]+)==(\d[\w.+]*)", install.read_text()))
    versions = {name: pins.get(name, "2.0+aws") for name in OF_AWS}
    for name, version in versions.items():
        requires = {"torch-neuronx": "libneuronxla>=2", "neuronx-cc": "nki"}.get(name, "")
        aws = machine.publish("aws", name, version, {f"{name}-from": "aws"}, requires=requires)
    for name, version, marker in re.findall(
        r"^([\w-]+)==(\S+)(?: ; (.+))?$", (folder / "requirements.txt").read_text(), re.MULTILINE
    ):
        if not marker or Marker(marker).evaluate():
            usual = machine.publish("usual", name, version, {})
    # PyPI accepts no local version, which is the part after the +.
    for name, version in versions.items():
        machine.publish("usual", name, version.partition("+")[0] + ".1", {f"{name}-from": "another"})
    machine.publish("usual", "libneuronxla", "99.0", {"libneuronxla-from": "another"})
    machine.publish("usual", "nki", "99.0", {"nki-from": "another"})
    install.write_text(install.read_text().replace(AWSS_INDEX, aws))
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        del machine.environment[name]
    venv = machine.folder / "made"
    subprocess.run(["python3", "-m", "venv", str(venv)], env=machine.environment, check=True)
    compiler = venv / "bin" / "neuron_parallel_compile"
    compiler.touch(mode=0o755)
    done = subprocess.run(
        ["bash", str(install), str(venv)],
        env={**machine.environment, "PIP_INDEX_URL": usual, "IMAGE_RECIPE": "neuron"},
        capture_output=True,
        text=True,
    )
    succeeds(done)
    found = {path.name.removesuffix("-from"): path.read_text() for path in venv.rglob("*-from")}
    assert found == dict.fromkeys(OF_AWS, "aws")
