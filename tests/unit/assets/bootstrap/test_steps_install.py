"""The install steps, run for real: what would touch a machine is a stub that writes down its arguments.

Of each step what its header says; here the small ones, 10, 20, 36, 40 and 42. Others have files of their own.
"""

import re
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import APT, Machine, fails, succeeds
from training_cluster.paths import ASSETS

STEPS = sorted((ASSETS / "bootstrap" / "steps").glob("[1-5]*.sh"))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.stem)
def test_a_step_reads_what_its_header_says_and_nothing_else(step: Path) -> None:
    text = step.read_text()
    said = re.search(r"^# Reads: (.+)$", text, re.MULTILINE)
    sourced = set(re.findall(r'^source "\$BUNDLE/(\S+)"$', text, re.MULTILINE))
    assert sourced <= set(said[1].split() if said else [])
    for file in filter(Path.is_file, (ASSETS / name for name in sourced)):
        # What that sources beside itself: an image's bundle has what headers name, and no other file.
        beside = re.findall(
            r'^source "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/(\S+)"$', file.read_text(), re.MULTILINE
        )
        named = {str((file.parent / name).relative_to(ASSETS)) for name in beside}
        assert named <= set(said[1].split() if said else [])
    for pattern in said[1].split() if said else []:
        assert list(ASSETS.glob(pattern)) or "install.sh" in pattern


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.stem)
def test_a_step_names_only_pins_that_there_are(step: Path, machine: Machine) -> None:
    named = set(
        re.findall(r"\$\{?#?([A-Z_0-9]+_(?:VERSION|SHA256|URL|COMMIT|FINGERPRINT))\b", step.read_text())
    )
    assert named <= set(machine.environment)


def test_missing_base_tools_are_installed_by_one_call_and_then_nothing_is_asked(machine: Machine) -> None:
    install = 'for name in jq numactl nvme; do cp "$0" "$ROOT/../bin/$name"; done'
    have = "git curl make g++ lspci hwloc-info chronyc gpg rsync tmux htop unzip zstd"
    for name in set(have.split()) - {path.name for path in machine.bin.iterdir()}:
        machine.program(name)
    machine.program("apt-get", f'if [[ $* == *" install "* ]]; then {install}; fi')
    succeeds(machine.run("10"))
    assert machine.calls() == [
        f"{APT} update",
        f"{APT} install -y --no-install-recommends jq numactl nvme-cli",
    ]
    succeeds(machine.run("10"))
    assert machine.calls() == []


def test_base_tools_of_amazon_linux_have_its_own_names(machine: Machine) -> None:
    machine.program("dnf", "exit 1")
    fails(machine.run("10"), "could not install the packages", "gcc-c++", "curl-minimal")
    assert machine.calls()[0].startswith("dnf install -y -q curl-minimal jq gcc-c++ pciutils")


def test_a_python_without_venv_or_headers_gets_both(machine: Machine) -> None:
    machine.program("python3", 'test -e "$ROOT/complete"')
    machine.program("apt-get", 'if [[ $* == *python3-dev* ]]; then touch "$ROOT/complete"; fi')
    succeeds(machine.run("20"))
    assert f"{APT} install -y --no-install-recommends python3-venv python3-dev" in machine.calls()
    succeeds(machine.run("20"))
    assert [call for call in machine.calls() if call.startswith("apt-get")] == []


def test_a_python_that_stays_incomplete_is_an_error(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    machine.program("dnf")
    fails(machine.run("20"), "no Python 3.10 or newer with venv and headers")
    assert "dnf install -y -q python3.12 python3.12-devel" in machine.calls()


def allocator_after(machine: Machine, package: str) -> None:
    lib = machine.root / "usr/lib/x86_64-linux-gnu"
    lib.mkdir(parents=True)
    machine.program(
        "apt-get",
        f'if [[ $* == *" {package}" ]]; then touch "{lib}/libtcmalloc_minimal.so.4"; fi\n[[ $* != *t64 ]]',
    )


@pytest.mark.slow
def test_xeon_libraries_get_stable_names(machine: Machine) -> None:
    allocator_after(machine, "libtcmalloc-minimal4")
    files = {"intel_openmp-2026.2.0.data/data/lib/libiomp5.so": "openmp"}
    sha256 = machine.wheel("intel-openmp", "2026.2.0", files)
    succeeds(machine.run("36", RECIPE="cpu", INTEL_OPENMP_SHA256=sha256))
    assert [call.split()[-1] for call in machine.calls() if " install " in call] == [
        "libtcmalloc-minimal4t64",
        "libtcmalloc-minimal4",
    ]
    lib = machine.opt / "lib"
    assert (lib / "liballocator.so").readlink() == Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")
    assert (lib / "libiomp5.so").read_text() == "openmp"
    written = (lib / "libiomp5.so").stat().st_mtime_ns
    succeeds(machine.run("36", INTEL_OPENMP_SHA256=sha256, PIP_FIND_LINKS=""))
    assert machine.calls() == []
    assert (lib / "libiomp5.so").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_wheel_of_another_checksum_is_not_unpacked(machine: Machine) -> None:
    allocator_after(machine, "libtcmalloc-minimal4")
    machine.wheel("intel-openmp", "2026.2.0", {"intel_openmp-2026.2.0.data/data/lib/libiomp5.so": "evil"})
    fails(
        machine.run("36"),
        "could not fetch the wheel intel-openmp 2026.2.0",
        machine.environment["INTEL_OPENMP_SHA256"],
    )
    assert not (machine.opt / "lib" / "libiomp5.so").exists()


def network(
    machine: Machine,
    *,
    installer: str = "1.49.0",
    libfabric: str = "2.4.0amzn5.0",
    plugin: bool = True,
) -> None:
    amazon = machine.root / "opt" / "amazon"
    said = f"fi_info: {libfabric}; libfabric: {libfabric}; libfabric api: 2.4"
    machine.program("fi_info", f'tr ";" "\\n" <<<"{said}" | sed "s/^ //"', at=amazon / "efa/bin/fi_info")
    (amazon / "efa_installed_packages").write_text(
        f"# EFA installer version: {installer}\n# Debug packages: no\n"
    )
    if plugin:
        (amazon / "ofi-nccl/lib").mkdir(parents=True)
        (amazon / "ofi-nccl/lib/libnccl-net.so").touch()


def test_parallelclusters_network_stack_passes_and_is_named(machine: Machine) -> None:
    network(machine)
    done = machine.run("40", RECIPE="gpu")
    succeeds(done)
    assert "EFA installer 1.49.0, libfabric 2.4.0" in done.stderr


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"installer": "1.38.0"}, "EFA installer 1.38.0, older than 1.43.2"),
        ({"libfabric": "1.9.1amzn1.0"}, "libfabric 1.9.1, older than 1.22.0"),
        ({"plugin": False}, "no plugin between NCCL and EFA"),
    ],
)
def test_a_network_stack_that_is_too_old_or_not_whole_is_an_error(
    machine: Machine, facts: dict[str, str], word: str
) -> None:
    network(machine, **facts)  # type: ignore[arg-type]
    fails(machine.run("40", RECIPE="gpu"), word, "-c image=official or build")


def test_neuron_brings_its_own_way_to_efa(machine: Machine) -> None:
    network(machine, plugin=False)
    succeeds(machine.run("40", RECIPE="neuron"))


def test_an_image_without_efa_software_is_refused_unless_its_nodes_have_no_efa(machine: Machine) -> None:
    machine.program("lspci", "echo '00:05.0 0200: 1d0f:ec20'")
    fails(machine.run("40", RECIPE="gpu"), "has no EFA software (/opt/amazon/efa)")
    succeeds(machine.run("40", RECIPE="cpu"))
    machine.program("lspci", "echo '00:1d.0 0200: 1d0f:efa1'")
    fails(machine.run("40", RECIPE="cpu"), "has no EFA software")


@pytest.mark.parametrize(
    ("said", "good"), [("dcgmi  version: 4.4.1", True), ("dcgmi  version: 3.3.6", False)]
)
def test_the_gpu_manager_has_a_floor(machine: Machine, said: str, good: bool) -> None:
    machine.program("dcgmi", f"echo '{said}'")
    done = machine.run("42")
    if good:
        succeeds(done)
    else:
        fails(done, "has DCGM 3.3.6, older than 4.2.3")


def test_an_image_without_the_gpu_manager_says_so(machine: Machine) -> None:
    fails(machine.run("42"), "this image has no DCGM")
