"""The pins of Neuron are those of one release: driver, runtime, collectives, tools and Python packages."""

import re

from training_cluster.catalog.versions import load_versions
from training_cluster.paths import TRAINING

# aws-neuron-sdk, src/helperscripts/n2-manifest.json at 81ce03ae of 2026-08-21, packages for trn1; of
# libneuronxla the one of PyTorch (3.x is JAX's). The next release, 2.32.0, has no torch-neuronx: it cannot
# train by PyTorch/XLA.
RELEASE = "2.31.1"
PACKAGES = {
    "aws-neuronx-dkms": "2.29.0.0",
    "aws-neuronx-runtime-lib": "2.33.10.0",
    "aws-neuronx-collectives": "2.33.10.0",
    "aws-neuronx-tools": "2.31.15.0",
    "torch-neuronx": "2.9.0.2.15.32035",
    "neuronx-cc": "2.26.6360.0",
    "libneuronxla": "2.2.17544.0",
    "nki": "0.5.0",
}
SYSTEM = {
    "aws-neuronx-dkms": "neuron_driver",
    "aws-neuronx-runtime-lib": "neuron_runtime",
    "aws-neuronx-collectives": "neuron_collectives",
    "aws-neuronx-tools": "neuron_tools",
}


def pinned() -> dict[str, str]:
    """The version of each package of Neuron, without the local part."""
    pins = load_versions().pins
    script = (TRAINING / "bert-trainium" / "install.sh").read_text(encoding="utf-8")
    found = dict(re.findall(r"\b([a-z][\w-]*)==(\d[\d.]*)\+", script))
    return found | {package: pins[name].version for package, name in SYSTEM.items()}


def test_all_packages_are_of_one_release() -> None:
    assert pinned() == PACKAGES
    assert load_versions().pins["neuron_driver"].source.startswith(f"Neuron {RELEASE},")


def test_torch_is_of_torch_neuronxs_line() -> None:
    script = (TRAINING / "bert-trainium" / "install.sh").read_text(encoding="utf-8")
    line = ".".join(pinned()["torch-neuronx"].split(".")[:2])
    for name in ("torch", "torch-xla"):
        assert re.search(rf"[ (]{name}=={re.escape(line)}\.\d+[ )]", script), name
