"""The install steps, run for real: what would touch a machine is a stub that writes down its arguments."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.step_machine import ASSETS, KERNEL, Machine

STEPS = sorted((ASSETS / "bootstrap" / "steps").glob("[1-5]*.sh"))
APT = "apt-get -o DPkg::Lock::Timeout=60 -qq"


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment with pip, made once: ensurepip takes seconds."""
    folder = tmp_path_factory.mktemp("venv") / "venv"
    subprocess.run(["/usr/bin/env", "python3", "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def machine(tmp_path: Path, venv: Path) -> Machine:
    return Machine(tmp_path, venv=venv)


def fails(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """A step's failure: its last line is one sentence that has these words."""
    assert done.returncode != 0, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in last, done.stderr


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.stem)
def test_a_step_reads_what_its_header_says_and_nothing_else(step: Path) -> None:
    text = step.read_text()
    said = re.search(r"^# Reads: (.+)$", text, re.MULTILINE)
    sourced = set(re.findall(r'^source "\$BUNDLE/(\S+)"$', text, re.MULTILINE))
    assert sourced <= set(said[1].split() if said else [])
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


DRIVER = """#!/bin/sh
echo "installer CC=$CC $*" >>"$ROOT/../calls"
echo "$NVIDIA_DRIVER_VERSION" >"$ROOT/version"
echo NVIDIA >"$ROOT/license"
"""


@pytest.fixture
def volta(machine: Machine) -> Machine:
    """ParallelCluster's AMI: the open modules of a newer branch."""
    (machine.root / "version").write_text("595.71.05\n")
    (machine.root / "license").write_text("Dual MIT/GPL\n")
    (machine.root / "lib" / "modules" / KERNEL / "build").mkdir(parents=True)
    machine.program("modinfo", 'cat "$ROOT/$4"')
    for name in ("systemctl", "nvidia-uninstall", "gcc-13"):
        machine.program(name)
    machine.environment["NVIDIA_DRIVER_SHA256"] = machine.serve(DRIVER)
    return machine


def test_the_open_driver_is_replaced_by_the_proprietary_one_of_the_last_branch_with_volta(
    volta: Machine,
) -> None:
    succeeds(volta.run("30", RECIPE="volta"))
    url = volta.environment["NVIDIA_DRIVER_URL"]
    file = volta.opt / "src" / "nvidia-driver-580.159.04.run"
    assert volta.calls() == [
        "curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20"
        f" --output {file}.part {url}",
        "systemctl cat nvidia-fabricmanager",
        "systemctl disable --now nvidia-fabricmanager",
        "systemctl cat nvidia-imex",
        "systemctl disable --now nvidia-imex",
        "nvidia-uninstall --silent",
        "installer CC=gcc-13 --silent --dkms --disable-nouveau --no-cc-version-check"
        f" --kernel-module-type=proprietary --kernel-name={KERNEL}",
    ]
    assert not file.exists()
    before = volta.files()
    succeeds(volta.run("30", RECIPE="volta"))
    assert (volta.calls(), volta.files()) == ([], before)


def test_the_open_modules_of_the_right_version_are_not_enough(volta: Machine) -> None:
    (volta.root / "version").write_text("580.159.04\n")
    succeeds(volta.run("30"))
    assert any(call.startswith("installer") for call in volta.calls())


def test_a_driver_that_does_not_stay_is_an_error(volta: Machine) -> None:
    volta.environment["NVIDIA_DRIVER_SHA256"] = volta.serve("#!/bin/sh\n")
    fails(volta.run("30"), f"kernel {KERNEL} has no proprietary NVIDIA driver 580.159.04")


def test_a_driver_of_another_checksum_is_not_run(volta: Machine) -> None:
    volta.serve(DRIVER.replace("NVIDIA", "EVIL"))
    fails(volta.run("30"), "its SHA-256 is not " + volta.environment["NVIDIA_DRIVER_SHA256"])
    assert not any(call.startswith(("installer", "nvidia-uninstall")) for call in volta.calls())
    assert list((volta.opt / "src").iterdir()) == []


def test_a_driver_whose_checksum_nobody_knows_is_not_even_fetched(volta: Machine) -> None:
    fails(volta.run("30", NVIDIA_DRIVER_SHA256=""), "no SHA-256 of", "versions.yaml")
    assert volta.calls() == []


def test_a_killed_download_leaves_nothing_that_a_second_run_would_take(volta: Machine) -> None:
    sha256 = volta.serve(DRIVER, killed=True)
    fails(volta.run("30", NVIDIA_DRIVER_SHA256=sha256), "could not fetch")
    assert [path.suffix for path in (volta.opt / "src").iterdir()] == [".part"]
    assert not any(call.startswith("installer") for call in volta.calls())
    volta.serve(DRIVER)
    succeeds(volta.run("30", NVIDIA_DRIVER_SHA256=sha256))
    assert list((volta.opt / "src").iterdir()) == []


def test_a_driver_branch_without_volta_is_refused(volta: Machine) -> None:
    fails(volta.run("30", NVIDIA_DRIVER_VERSION="590.48.01"), "has no Volta", "580 is the last")
    assert volta.calls() == []


TOOLKIT = """#!/bin/sh
echo "installer $*" >>"$ROOT/../calls"
mkdir -p "$ROOT/usr/local/cuda-12.6/bin"
printf '#!/bin/sh\\necho "release 12.6, V12.6.85"\\n' >"$ROOT/usr/local/cuda-12.6/bin/nvcc"
chmod 755 "$ROOT/usr/local/cuda-12.6/bin/nvcc"
"""


def test_the_volta_toolkit_is_installed_beside_the_amis_and_taken(machine: Machine) -> None:
    current = machine.root / "usr" / "local" / "cuda"
    (current.parent / "cuda-13.2").mkdir(parents=True)
    current.symlink_to("/usr/local/cuda-13.2")
    sha256 = machine.serve(TOOLKIT)
    succeeds(machine.run("32", CUDA_TOOLKIT_SHA256=sha256))
    fetched, installed = machine.calls()
    assert fetched.endswith(machine.environment["CUDA_TOOLKIT_URL"])
    toolkit = machine.root / "usr" / "local" / "cuda-12.6"
    wanted = f"installer --silent --toolkit --override --no-man-page --toolkitpath={toolkit} --tmpdir="
    assert installed.startswith(wanted)
    assert current.readlink() == Path("/usr/local/cuda-12.6")
    assert list((machine.opt / "src").iterdir()) == []
    before = machine.files()
    succeeds(machine.run("32", CUDA_TOOLKIT_SHA256=sha256))
    assert (machine.calls(), machine.files()) == ([], before)


def test_another_toolkit_in_its_place_is_an_error(machine: Machine) -> None:
    script = TOOLKIT.replace("release 12.6", "release 12.4")
    fails(machine.run("32", CUDA_TOOLKIT_SHA256=machine.serve(script)), "is not the CUDA toolkit 12.6")


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


NEURON = "aws-neuronx-dkms=2.30.2.0* aws-neuronx-runtime-lib=2.34.10.0* aws-neuronx-collectives=2.34.10.0*"


def test_neuron_is_installed_pinned_and_held_from_the_signed_repository(trainium: Machine) -> None:
    succeeds(trainium.run("34"))
    calls = trainium.calls()
    assert calls[0].endswith(trainium.environment["NEURON_KEY_URL"])
    assert calls[2:4] == [
        f"{APT} update",
        f"{APT} install -y --allow-downgrades --allow-change-held-packages linux-headers-{KERNEL}"
        f" {NEURON} aws-neuronx-tools=2.32.28.0*",
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
    fails(trainium.run("34"), "not AWS Neuron's 00FA2C1079260870A76D2C285749CAD8646D9185")
    assert not any(call.startswith("apt-get") for call in trainium.calls())
    assert list((trainium.root / "usr/share/keyrings").iterdir()) == []


def test_an_older_neuron_is_brought_to_the_pinned_versions(trainium: Machine) -> None:
    (trainium.root / "neuron").write_text("aws-neuronx-dkms=2.29.0.0\n")
    fails(trainium.run("34"), "packages are of other versions")
    assert any(
        f" install -y --allow-downgrades --allow-change-held-packages linux-headers-{KERNEL}" in call
        for call in trainium.calls()
    )


def test_neuron_on_amazon_linux_is_locked_with_the_kernel(trainium: Machine) -> None:
    (trainium.bin / "apt-get").unlink()
    trainium.program("rpm", 'sed -n "s/^${@: -1}-\\([0-9.]*\\).*/\\1/p" "$ROOT/neuron"')
    trainium.program("dnf", 'if [[ $1 == install ]]; then printf "%s\\n" "$@" >"$ROOT/neuron"; fi')
    succeeds(trainium.run("34"))
    calls = [call for call in trainium.calls() if call.startswith("dnf")]
    wanted = NEURON.replace("=", "-")
    assert calls == [
        f"dnf install -y -q kernel-devel-{KERNEL} {wanted} aws-neuronx-tools-2.32.28.0*",
        "dnf versionlock add aws-neuronx-dkms aws-neuronx-runtime-lib aws-neuronx-collectives"
        " aws-neuronx-tools kernel",
    ]
    assert "gpgcheck=1" in (trainium.root / "etc/yum.repos.d/aws-neuron.repo").read_text()


def allocator_after(machine: Machine, package: str) -> None:
    lib = machine.root / "usr/lib/x86_64-linux-gnu"
    lib.mkdir(parents=True)
    machine.program(
        "apt-get",
        f'if [[ $* == *" {package}" ]]; then touch "{lib}/libtcmalloc_minimal.so.4"; fi\n[[ $* != *t64 ]]',
    )


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


PYXIS = """\
install:
	mkdir -p $(DESTDIR)$(prefix)/lib/slurm
	echo "$$CPPFLAGS" >$(DESTDIR)$(prefix)/lib/slurm/spank_pyxis.so
"""


def test_pyxis_is_compiled_from_its_pinned_commit_where_it_lacks(machine: Machine) -> None:
    machine.program("enroot", at=machine.root / "usr/bin/enroot")
    machine.program("apt-get")
    url, commit = machine.repository({"Makefile": PYXIS})
    succeeds(machine.run("44", PYXIS_URL=url, PYXIS_COMMIT=commit))
    plugin = machine.root / "usr/local/lib/slurm/spank_pyxis.so"
    assert plugin.read_text() == f"-I {machine.root}/opt/slurm/include\n"
    before = machine.files()
    succeeds(machine.run("44", PYXIS_URL="/nowhere"))
    assert (machine.calls(), machine.files()) == ([], before)


def test_enroot_is_not_fetched_without_a_checksum(machine: Machine) -> None:
    machine.program("apt-get")
    machine.program("curl")
    fails(machine.run("44"), "no SHA-256 of", "enroot_4.1.2-1_amd64.deb", "versions.yaml")
    assert machine.calls() == []


def test_a_commit_that_the_repository_does_not_have_is_an_error(machine: Machine) -> None:
    machine.program("enroot", at=machine.root / "usr/bin/enroot")
    machine.program("apt-get")
    url, _ = machine.repository({"Makefile": PYXIS})
    fails(machine.run("44", PYXIS_URL=url, PYXIS_COMMIT="0" * 40), "could not fetch commit " + "0" * 40)


NCCL_TESTS = """\
default:
	mkdir -p $(BUILDDIR)
	echo "$$NVCC_GENCODE|$$NVCC_APPEND_FLAGS|$(MPI)|$(MPI_HOME)|$(CUDA_HOME)" >$(BUILDDIR)/all_reduce_perf
	cp $(NCCL_HOME)/lib/libnccl.so $(BUILDDIR)/broadcast_perf
"""


def test_nccl_tests_are_compiled_for_the_recipes_gpus_with_the_pinned_nccl(machine: Machine) -> None:
    machine.program("nvcc", at=machine.root / "usr/local/cuda/bin/nvcc")
    url, commit = machine.repository({"Makefile": NCCL_TESTS})
    files = {"nvidia/nccl/lib/libnccl.so.2": "nccl", "nvidia/nccl/include/nccl.h": ""}
    pins = {
        "NCCL_TESTS_URL": url,
        "NCCL_TESTS_COMMIT": commit,
        "NCCL_CU12_SHA256": machine.wheel("nvidia-nccl-cu12", "2.30.7", files),
    }
    succeeds(machine.run("46", RECIPE="volta", **pins))
    said = (machine.opt / "bin" / "all_reduce_perf").read_text().strip().split("|")
    assert said == [
        "-gencode=arch=compute_70,code=sm_70 ",
        "-Xlinker -rpath=/opt/training-cluster/nccl/lib",
        "1",
        f"{machine.root}/opt/amazon/openmpi",
        f"{machine.root}/usr/local/cuda",
    ]
    assert (machine.opt / "bin" / "broadcast_perf").read_text() == "nccl"
    before = machine.files()
    succeeds(
        machine.run("46", RECIPE="volta", **{**pins, "NCCL_TESTS_URL": "/nowhere", "PIP_FIND_LINKS": ""})
    )
    assert machine.files() == before


def test_nccl_tests_without_a_compiler_say_so(machine: Machine) -> None:
    fails(machine.run("46", RECIPE="gpu"), "no CUDA compiler", "usr/local/cuda/bin/nvcc")


# A python3 whose environments have a `python` that writes down pip's arguments and what the compiler is told.
PYTHON = """
if [[ $1 == -m && $2 == venv ]]; then
  mkdir -p "$3/bin"
  printf '%s\\n' '#!/bin/bash' 'echo "$NVTE_CUDA_ARCHS $TORCH_CUDA_ARCH_LIST pip $*" >>"$ROOT/../calls"' \\
    'while (($#)); do case $1 in --wheel-dir | --dest) touch "$2/$RANDOM.whl" ;; esac; shift; done' \\
    >"$3/bin/python"
  chmod 755 "$3/bin/python"
fi
"""


def test_megatrons_binding_is_compiled_for_every_gpu_of_the_catalog(machine: Machine) -> None:
    machine.program("nvcc", at=machine.root / "usr/local/cuda/bin/nvcc")
    machine.program("python3", PYTHON)
    succeeds(machine.run("48", RECIPE="gpu"))
    torch, compiled, core = (call for call in machine.calls() if " pip " in call)
    assert "torch==2.13.0 transformer_engine[core_cu13]==2.20.2" in torch
    assert compiled.startswith("80;86;89;90;100;103 8.0;8.6;8.9;9.0;10.0;10.3 pip -m pip")
    assert "wheel --no-build-isolation --no-deps --require-hashes --wheel-dir" in compiled
    assert core.endswith("megatron-core==0.16.1")
    assert len(list((machine.opt / "wheels").glob("*.whl"))) == 2
    assert not (machine.opt / "src" / "megatron").exists()
    before = machine.files()
    succeeds(machine.run("48", RECIPE="gpu"))
    assert [call for call in machine.calls() if " pip " in call] == []
    assert machine.files() == before


class Workload:
    """A workload of one small package, which pip installs for real."""

    def __init__(
        self, machine: Machine, *, recipes: str = "all", budget: str = "60 s", install: str = ""
    ) -> None:
        self.machine = machine
        self.folder = machine.bundle / "training" / "tiny"
        self.folder.mkdir()
        machine.wheel("tinything", "1.0", {"tinything.py": "VALUE = 1\n"})
        head = f"# Tiny.\n# Recipes: {recipes}\n# Budget: {budget}\n"
        (self.folder / "requirements.txt").write_text(f"{head}tinything==1.0\n")
        if install:
            (self.folder / "install.sh").write_text(install)
        self.venv = machine.opt / "venvs" / "tiny"

    def make(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.machine.run(
            "50", **{"WORKLOADS": "tiny", "RECIPE": "gpu", "NODE_TYPE": "Image", **environment}
        )

    def works(self) -> bool:
        done = subprocess.run([self.venv / "bin" / "python", "-c", "import tinything"], check=False)
        return done.returncode == 0


def test_a_workloads_environment_is_made_once_and_then_without_network(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    assert tiny.works()
    before = machine.files()
    (tiny.folder / "requirements.txt").write_text(
        (tiny.folder / "requirements.txt").read_text().replace("# Tiny.", "# Another comment.")
    )
    succeeds(tiny.make(PIP_FIND_LINKS=""))
    assert machine.files() == before


def test_a_changed_requirement_is_installed(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    machine.wheel("tinything", "2.0", {"tinything.py": "VALUE = 2\n"})
    file = tiny.folder / "requirements.txt"
    file.write_text(file.read_text().replace("1.0", "2.0"))
    succeeds(tiny.make())
    assert "VALUE = 2" in next(tiny.venv.rglob("tinything.py")).read_text()


def test_an_environment_without_its_packages_is_finished_by_the_next_run(machine: Machine) -> None:
    tiny = Workload(machine)
    fails(tiny.make(PIP_FIND_LINKS=""), "could not make the environment of tiny")
    assert not (tiny.venv / "requirements.sha256").exists()
    succeeds(tiny.make())
    assert tiny.works()


def test_an_install_script_gets_the_environment_and_its_own_budget(machine: Machine) -> None:
    slow = "# Budget: 1 s\nsleep 60\n"
    tiny = Workload(machine, budget="3 s", install=slow)
    fails(tiny.make(), "tiny took more than the 4 s")
    (tiny.folder / "install.sh").write_text('# Budget: 60 s\ntouch "$1/compiled"\n')
    succeeds(tiny.make())
    assert (tiny.venv / "compiled").is_file()


def test_what_is_for_image_builds_alone_is_refused_at_a_nodes_start(machine: Machine) -> None:
    tiny = Workload(machine, install="# Moment: image\n# Budget: 60 s\n")
    done = tiny.make(NODE_TYPE="ComputeFleet")
    fails(done, "could not make the environment of tiny")
    assert "deploy with -c image=build" in done.stderr
    succeeds(tiny.make())


def test_a_workload_for_other_nodes_is_passed_over(machine: Machine) -> None:
    tiny = Workload(machine, recipes="cpu neuron")
    done = tiny.make()
    succeeds(done)
    assert "not for nodes of the recipe gpu" in done.stderr
    assert not tiny.venv.exists()


def test_a_workload_that_there_is_not_is_an_error(machine: Machine) -> None:
    fails(machine.run("50", WORKLOADS="gpt3", RECIPE="gpu"), "no workload gpt3")


def test_no_workloads_need_nothing(machine: Machine) -> None:
    succeeds(machine.run("50", WORKLOADS="", RECIPE="gpu"))


def test_jobs_take_the_images_environment_only_while_it_is_of_their_scripts(machine: Machine) -> None:
    tiny = Workload(machine)
    succeeds(tiny.make())
    ask = ["bash", "-c", 'source "$1/environment.sh"; environment_of "$1/tiny"', "_", str(tiny.folder.parent)]
    environment = {**machine.environment, "TRAINING_VENVS": "/fsx/venvs"}

    def answer() -> str:
        return subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert answer() == str(tiny.venv)
    with (tiny.folder / "requirements.txt").open("a") as file:
        file.write("another==1.0\n")
    assert answer() == "/fsx/venvs/tiny"


def test_a_jobs_prepare_script_makes_the_shared_environment_where_the_image_has_none(
    machine: Machine,
) -> None:
    tiny = Workload(machine)
    (tiny.folder / "prepare.sh").write_text((ASSETS / "training" / "gpt2" / "prepare.sh").read_text())
    (tiny.folder / "prepare.py").write_text("import sys, tinything\nprint(sys.prefix)\n")
    shared = machine.folder / "fsx" / "venvs"

    def prepare() -> str:
        done = subprocess.run(
            ["bash", str(tiny.folder / "prepare.sh")],
            env={**machine.environment, "NODE_TYPE": "ComputeFleet", "TRAINING_VENVS": str(shared)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert prepare() == str(shared / "tiny")
    machine.environment["PIP_FIND_LINKS"] = ""
    assert prepare() == str(shared / "tiny")
    machine.environment["PIP_FIND_LINKS"] = str(machine.folder / "wheels")
    succeeds(tiny.make())
    assert prepare() == str(tiny.venv)
