"""Steps 43 and 44: what containers under Slurm need and an AMI lacks."""

import pytest

from tests.unit.assets.bootstrap.step_machine import APT, Machine, fails, succeeds
from training_cluster.catalog.steps import RECIPES, start_steps

PYXIS = """\
install:
\tmkdir -p $(DESTDIR)$(prefix)/lib/slurm
\techo "$$CPPFLAGS" >$(DESTDIR)$(prefix)/lib/slurm/spank_pyxis.so
"""
# A package manager that brings NVIDIA's tool, and notes which sources it has.
INSTALLS = """
if [[ $* == *install* ]]; then
  cat "$ROOT"/etc/apt/sources.list.d/* "$ROOT"/etc/yum.repos.d/* >"$ROOT/../sources" 2>/dev/null
  printf '#!/bin/bash\\n%s\\n' "$CLI" >"$ROOT/../bin/nvidia-container-cli"
  chmod 755 "$ROOT/../bin/nvidia-container-cli"
fi
"""
KEY = "https://nvidia.github.io/libnvidia-container/gpgkey"


@pytest.fixture
def official(machine: Machine) -> Machine:
    """ParallelCluster's AMI: Enroot and Pyxis, and nothing that brings GPUs into a container."""
    for folder in ("etc/apt/sources.list.d", "etc/yum.repos.d"):
        (machine.root / folder).mkdir(parents=True)
    machine.program("enroot", at=machine.root / "usr/bin/enroot")
    machine.program("spank", at=machine.root / "usr/local/lib/slurm/spank_pyxis.so")
    machine.serve("the key")
    machine.program("gpg", f"echo fpr:::::::::{machine.environment['NVIDIA_CONTAINER_KEY_FINGERPRINT']}:")
    machine.program("apt-get", INSTALLS)
    machine.environment["CLI"] = "exit 0"
    return machine


def test_what_brings_gpus_into_containers_is_installed_from_nvidias_signed_repository(
    official: Machine,
) -> None:
    succeeds(official.run("44"))
    calls = official.calls()
    assert calls[0].endswith(KEY)
    assert calls[-2:] == [
        f"{APT} update",
        f"{APT} install -y --no-install-recommends libnvidia-container1=1.20.0-1"
        " libnvidia-container-tools=1.20.0-1",
    ]
    signed = "[signed-by=/usr/share/keyrings/nvidia-container.asc]"
    assert (official.folder / "sources").read_text() == (
        f"deb {signed} https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
    )
    assert list((official.root / "etc/apt/sources.list.d").iterdir()) == [], "nothing else comes from there"
    before = official.files()
    succeeds(official.run("44"))
    assert (official.calls(), official.files()) == ([], before)


def test_on_amazon_linux_the_list_of_packages_is_verified(official: Machine) -> None:
    (official.bin / "apt-get").unlink()
    official.program("dnf", INSTALLS)
    succeeds(official.run("44"))
    assert official.calls()[-1] == (
        "dnf install -y -q libnvidia-container1-1.20.0-1 libnvidia-container-tools-1.20.0-1"
    )
    assert (official.folder / "sources").read_text().splitlines()[2:] == [
        "baseurl=https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64",
        "enabled=1",
        "repo_gpgcheck=1",
        "gpgcheck=0",
        "gpgkey=file:///usr/share/keyrings/nvidia-container.asc",
    ]


def test_another_key_than_nvidias_installs_nothing_of_it(official: Machine) -> None:
    official.program("gpg", f"echo fpr:::::::::{'C' * 40}:")
    fails(official.run("44"), f"{KEY} has the key", "nothing was installed")
    assert not any(call.startswith("apt-get") for call in official.calls())


def test_a_tool_that_does_not_run_is_an_error(official: Machine) -> None:
    fails(official.run("44", CLI="exit 127"), "nvidia-container-cli does not run after its installation")


def test_pyxis_is_compiled_from_its_pinned_commit_where_it_lacks(official: Machine) -> None:
    url, commit = official.repository({"Makefile": PYXIS})
    plugin = official.root / "usr/local/lib/slurm/spank_pyxis.so"
    plugin.unlink()
    succeeds(official.run("43", PYXIS_URL=url, PYXIS_COMMIT=commit))
    assert plugin.read_text() == f"-I {official.root}/opt/slurm/include\n"
    official.calls()
    before = official.files()
    succeeds(official.run("43", PYXIS_URL="/nowhere"))
    assert (official.calls(), official.files()) == ([], before)


@pytest.mark.parametrize("recipe", RECIPES)
def test_nodes_of_every_recipe_get_pyxis_before_slurm_reads_its_settings(recipe: str) -> None:
    """Slurm ignores `--container-image` on a node without it: the program runs on the host."""
    names = [step.name for step in start_steps(node="ComputeFleet", recipe=recipe)]
    assert names.index("43-install-pyxis") < names.index("72-enable-containers")


def test_enroot_is_not_fetched_without_a_checksum_and_the_rest_is_installed(official: Machine) -> None:
    (official.root / "usr/bin/enroot").unlink()
    fails(official.run("44"), "no SHA-256 of", "enroot_4.1.2-1_amd64.deb", "versions.yaml")
    assert not any("NVIDIA/enroot" in call for call in official.calls())
    assert (official.bin / "nvidia-container-cli").exists()


def test_a_commit_that_the_repository_does_not_have_is_an_error(official: Machine) -> None:
    url, _ = official.repository({"Makefile": PYXIS})
    (official.root / "usr/local/lib/slurm/spank_pyxis.so").unlink()
    done = official.run("43", PYXIS_URL=url, PYXIS_COMMIT="0" * 40)
    fails(done, "could not fetch commit " + "0" * 40)
