"""Step 34: the packages of one Neuron release, pinned and held."""

import pytest

from tests.unit.assets.bootstrap.step_machine import APT, KERNEL, Machine, fails, succeeds
from training_cluster.catalog.versions import load_versions


@pytest.fixture
def trainium(machine: Machine) -> Machine:
    for folder in ("etc/apt/sources.list.d", "etc/yum.repos.d", "usr/share/keyrings"):
        (machine.root / folder).mkdir(parents=True)
    machine.serve("the key")
    key = machine.environment["NEURON_KEY_FINGERPRINT"]
    machine.program("gpg", f"echo pub:-:2048; echo fpr:::::::::{key}:; echo fpr:::::::::{'B' * 40}:")
    machine.program("modinfo", 'test -e "$ROOT/neuron"')
    machine.program("modprobe")
    machine.program("apt-mark")
    machine.program("dpkg-query", 'grep -s "^${@: -1}=" "$ROOT/neuron" | cut -d= -f2')
    machine.program(
        "apt-get",
        '[[ $* != *" install "* ]] || for each in "$@"; do echo "${each/\\*/-a1b2}" >>"$ROOT/neuron"; done',
    )
    return machine


NEURON = " ".join(
    f"aws-neuronx-{package}={load_versions().pins[f'neuron_{pin}'].version}*"
    for package, pin in {
        "dkms": "driver",
        "runtime-lib": "runtime",
        "collectives": "collectives",
        "tools": "tools",
    }.items()
)


def test_neuron_is_installed_pinned_and_held_from_the_signed_repository(trainium: Machine) -> None:
    succeeds(trainium.run("34"))
    calls = trainium.calls()
    assert calls[0].endswith(trainium.environment["NEURON_KEY_URL"])
    assert calls[2:4] == [
        f"{APT} update",
        f"{APT} install -y --allow-downgrades --allow-change-held-packages linux-headers-{KERNEL} {NEURON}",
    ]
    assert "apt-mark hold aws-neuronx-dkms" in calls
    assert not any(call.startswith("modprobe") for call in calls)
    listed = (trainium.root / "etc/apt/sources.list.d/aws-neuron.list").read_text()
    signed = "[signed-by=/usr/share/keyrings/aws-neuron.asc]"
    assert listed == f"deb {signed} https://apt.repos.neuron.amazonaws.com noble main\n"
    assert "/opt/aws/neuron/bin" in (trainium.root / "etc/profile.d/aws-neuron.sh").read_text()


def test_a_second_run_of_neuron_asks_no_network(trainium: Machine) -> None:
    succeeds(trainium.run("34"))
    trainium.calls()
    succeeds(trainium.run("34"))
    assert trainium.calls() == []


def test_on_a_node_the_neuron_module_is_loaded(trainium: Machine) -> None:
    succeeds(trainium.run("34", NODE_TYPE="ComputeFleet"))
    assert trainium.calls()[-1] == "modprobe neuron"


def test_another_key_than_neurons_installs_nothing(trainium: Machine) -> None:
    trainium.program("gpg", f"echo fpr:::::::::{'C' * 40}:")
    fails(trainium.run("34"), "has the key", "and 00FA2C1079260870A76D2C285749CAD8646D9185 is expected")
    assert not any(call.startswith("apt-get") for call in trainium.calls())
    assert list((trainium.root / "usr/share/keyrings").iterdir()) == []


def test_an_older_neuron_is_brought_to_the_pinned_versions(trainium: Machine) -> None:
    (trainium.root / "neuron").write_text("aws-neuronx-dkms=2.1.0.0\n")
    fails(trainium.run("34"), "packages are of other versions")
    assert any(
        f" install -y --allow-downgrades --allow-change-held-packages linux-headers-{KERNEL}" in call
        for call in trainium.calls()
    )


@pytest.mark.parametrize(
    ("kernel", "package"),
    [("6.1.177-224.371.amzn2023.x86_64", "kernel"), ("6.12.58-82.121.amzn2023.x86_64", "kernel6.12")],
)
def test_neuron_on_amazon_linux_is_locked_with_the_kernel(
    trainium: Machine, kernel: str, package: str
) -> None:
    (trainium.bin / "apt-get").unlink()
    trainium.program("uname", f"echo {kernel}")
    trainium.program("rpm", 'sed -n "s/^${@: -1}-\\([0-9.]*\\).*/\\1/p" "$ROOT/neuron"')
    trainium.program("dnf", 'if [[ $1 == install ]]; then printf "%s\\n" "$@" >"$ROOT/neuron"; fi')
    succeeds(trainium.run("34"))
    calls = [call for call in trainium.calls() if call.startswith("dnf")]
    wanted = NEURON.replace("=", "-")
    assert calls == [
        f"dnf install -y -q {package}-devel-{kernel} {wanted}",
        "dnf versionlock add aws-neuronx-dkms aws-neuronx-runtime-lib aws-neuronx-collectives"
        f" aws-neuronx-tools {package}",
    ]
    assert "gpgcheck=1" in (trainium.root / "etc/yum.repos.d/aws-neuron.repo").read_text()
