"""Steps 36, 43, 46, 48 and 50 with real packages and sources: this machine's own index and repositories."""

import re
import subprocess
from pathlib import Path

import pytest
from packaging.markers import Marker

from tests.unit.assets.bootstrap.step_machine import Machine, fails, succeeds
from training_cluster.paths import ASSETS

TRAINING = ASSETS / "training"


def run(script: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a workload's script."""
    command = ["bash", str(script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_xeon_libraries_get_stable_names(machine: Machine) -> None:
    """The wheel of another checksum is not unpacked."""
    lib = machine.root / "usr/lib/x86_64-linux-gnu"
    lib.mkdir(parents=True)
    allocator = f'if [[ $* == *" libtcmalloc-minimal4" ]]; then touch "{lib}/libtcmalloc_minimal.so.4"; fi'
    machine.program("apt-get", f"{allocator}\n[[ $* != *t64 ]]")
    files = {"intel_openmp-2026.2.0.data/data/lib/libiomp5.so": "openmp"}
    sha256 = machine.wheel("intel-openmp", "2026.2.0", files)
    pinned = machine.environment["INTEL_OPENMP_SHA256"]
    fails(machine.run("36"), "could not fetch the wheel intel-openmp 2026.2.0", pinned)
    assert not (machine.opt / "lib" / "libiomp5.so").exists()
    installs = [call.split()[-1] for call in machine.calls() if " install " in call]
    assert installs == ["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"]
    machine.does("36", INTEL_OPENMP_SHA256=sha256)
    found = machine.opt / "lib" / "liballocator.so"
    assert found.readlink() == Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")
    assert (machine.opt / "lib" / "libiomp5.so").read_text() == "openmp"
    before = machine.files()
    machine.does("36", INTEL_OPENMP_SHA256=sha256, PIP_FIND_LINKS="")
    assert machine.files() == before
    (machine.opt / "lib" / "libiomp5.so").unlink()
    machine.does("36", HOSTTYPE="aarch64")  # Intel has none for it
    assert not (machine.opt / "lib" / "libiomp5.so").exists()


PYXIS = """\
install:
\tmkdir -p $(DESTDIR)$(prefix)/lib/slurm
\techo "$$CPPFLAGS" >$(DESTDIR)$(prefix)/lib/slurm/spank_pyxis.so
"""


def test_pyxis_is_compiled_from_its_commit(machine: Machine) -> None:
    url, commit = machine.repository({"Makefile": PYXIS})
    unknown = "0" * 40
    fails(machine.run("43", PYXIS_URL=url, PYXIS_COMMIT=unknown), f"could not fetch commit {unknown}")
    machine.does("43", PYXIS_URL=url, PYXIS_COMMIT=commit)
    assert machine.text("usr/local/lib/slurm/spank_pyxis.so") == f"-I {machine.root}/opt/slurm/include\n"
    before = machine.files()
    machine.does("43", PYXIS_URL="/nowhere")
    assert machine.files() == before


NCCL_TESTS = """\
default:
	mkdir -p $(BUILDDIR)
	echo "$$NVCC_GENCODE|$$NVCC_APPEND_FLAGS|$(MPI)|$(MPI_HOME)|$(CUDA_HOME)" >$(BUILDDIR)/all_reduce_perf
	cp $(NCCL_HOME)/lib/libnccl.so $(BUILDDIR)/broadcast_perf
"""


@pytest.mark.slow
def test_nccl_tests_have_the_pinned_nccl(machine: Machine) -> None:
    machine.program("usr/local/cuda/bin/nvcc")
    url, commit = machine.repository({"Makefile": NCCL_TESTS})
    files = {"nvidia/nccl/lib/libnccl.so.2": "nccl", "nvidia/nccl/include/nccl.h": ""}
    pins = {
        "NCCL_TESTS_COMMIT": commit,
        "NCCL_CU12_SHA256": machine.wheel("nvidia-nccl-cu12", "2.30.7", files),
    }
    machine.does("46", RECIPE="volta", NCCL_TESTS_URL=url, **pins)
    assert (machine.opt / "bin" / "all_reduce_perf").read_text().strip().split("|") == [
        "-gencode=arch=compute_70,code=sm_70 ",
        "-Xlinker -rpath=/opt/training-cluster/nccl/lib",
        "1",
        f"{machine.root}/opt/amazon/openmpi",
        f"{machine.root}/usr/local/cuda",
    ]
    assert (machine.opt / "bin" / "broadcast_perf").read_text() == "nccl"
    before = machine.files()
    machine.does("46", RECIPE="volta", NCCL_TESTS_URL="/nowhere", PIP_FIND_LINKS="", **pins)
    assert machine.files() == before


# A python3 whose environments have a `python` that writes down pip's arguments and what the compiler is told.
# Asked for the folder of packages, it answers.
PYTHON = """
if [[ $* == '-I -m venv '* ]]; then
  mkdir -p "$4/bin"
  printf '%s\\n' '#!/bin/bash' 'if [[ $2 == -c ]]; then echo "$ROOT/site"; exit; fi' \\
    'if [[ -n $CPATH ]]; then echo "CPATH $CPATH" >>"$ROOT/../calls"; fi' \\
    'told="$NVTE_PYTORCH_FORCE_BUILD $NVTE_CUDA_ARCHS $TORCH_CUDA_ARCH_LIST ${MAX_JOBS:+jobs}"' \\
    'echo "$told pip $*" >>"$ROOT/../calls"' \\
    'while (($#)); do case $1 in --wheel-dir | --dest) touch "$2/$RANDOM.whl" ;;' \\
    '--requirement) cat "$2" >>"$ROOT/../calls" ;; esac; shift; done' \\
    >"$4/bin/python"
  chmod 755 "$4/bin/python"
fi
"""


def test_megatron_is_compiled_for_every_gpu(machine: Machine) -> None:
    """Transformer Engine's set-up adds only the CUDA toolkit's headers, not those of torch's CUDA build."""
    machine.program("usr/local/cuda/bin/nvcc")
    machine.program("python3", PYTHON)
    machine.write("site/nvidia/cudnn/include/cudnn.h", "")
    done = machine.run("48", RECIPE="gpu")
    fails(done, f"torch 2.14.1 installed no {machine.root}/site/nvidia/nccl/include/nccl.h", "CUDA build")
    assert not any("--wheel-dir" in call for call in machine.calls())
    machine.write("site/nvidia/nccl/include/nccl.h", "")
    machine.does("48", RECIPE="gpu")
    calls = machine.calls()
    tools, torch, compiled, core = (call for call in calls if " pip " in call)
    assert "--no-deps --only-binary :all: --require-hashes" in tools
    verified = re.findall(r"^([\w-]+)==\S+ --hash=sha256:[0-9a-f]{64}$", "\n".join(calls), re.MULTILINE)
    assert verified == ["setuptools", "wheel", "ninja", "packaging", "pybind11", "transformer_engine_torch"]
    assert torch.endswith("install torch==2.14.1 transformer_engine[core_cu13]==2.20.2")
    assert compiled.startswith("TRUE 80;86;89;90;100;103 8.0;8.6;8.9;9.0;10.0;10.3 jobs pip -I -m pip")
    assert "wheel --no-build-isolation --no-deps --require-hashes --wheel-dir" in compiled
    assert core.endswith("megatron-core==0.16.1")
    site = machine.root / "site" / "nvidia"
    assert f"CPATH {site}/cudnn/include:{site}/nccl/include" in calls
    assert len(list((machine.opt / "wheels").glob("*.whl"))) == 2
    assert not (machine.opt / "src" / "megatron").exists()
    before = machine.files()
    machine.does("48", RECIPE="gpu")
    assert [call for call in machine.calls() if " pip " in call] == []
    assert machine.files() == before


def in_a_job(machine: Machine, workload: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Make an environment as prepare.sh does; print its folder."""
    make = 'venv="$(environment_of "$1")"; echo "$venv"; make_environment "$1" "$venv"'
    return machine.in_job(make, workload, **{"IMAGE_RECIPE": "gpu", **environment})


@pytest.mark.slow
def test_environments_with_and_without_transformer_engine_differ(machine: Machine) -> None:
    """The image says so if its step failed to compile it, and a job gets another environment."""
    (machine.bundle / "training" / "gpt2-megatron" / "requirements.lock").unlink()
    text = (TRAINING / "gpt2-megatron" / "requirements.txt").read_text()
    for name, version in re.findall(r"^([\w-]+)==([\w.]+)", text, re.MULTILINE):
        machine.wheel(name, version, {})
    machine.wheel("transformer_engine", "2.20.2", {"transformer_engine.py": ""})

    def made(**environment: str) -> tuple[Path, bool]:
        done = in_a_job(machine, "gpt2-megatron", **environment)
        succeeds(done)
        venv = Path(done.stdout.strip())
        return venv, bool(list(venv.rglob("transformer_engine.py")))

    done = machine.run("50", RECIPE="gpu", WORKLOADS="gpt2-megatron")
    fails(done, "could not create the environment of gpt2-megatron")
    assert "48-build-megatron, above, shows why its build failed" in done.stderr
    assert "-c image=build" not in done.stderr
    others = ({"TRANSFORMER_IMPL": "local"}, {"IMAGE_RECIPE": "cpu"})
    without = [made(**other) for other in others]
    assert [has_it for _, has_it in without] == [False, False]
    done = in_a_job(machine, "gpt2-megatron")
    assert done.returncode == 1, "the run takes an environment without Transformer Engine"
    assert "Deploy with -c image=build" in done.stderr
    assert "TRANSFORMER_IMPL=local" in done.stderr
    compiled = machine.opt / "wheels" / "transformer_engine_torch-2.20.2-cp312-cp312-linux_x86_64.whl"
    compiled.parent.mkdir()
    compiled.touch()
    venv, has_it = made()
    assert has_it and venv not in dict(without)
    before = machine.files()
    assert [made(**other) for other in others] == without
    assert machine.files() == before


@pytest.fixture
def tiny(machine: Machine) -> Path:
    """Return the folder of a workload of one small package, which pip installs for real."""
    folder = machine.bundle / "training" / "tiny"
    folder.mkdir()
    machine.wheel("tinything", "1.0", {"tinything.py": "VALUE = 1\n"})
    (folder / "requirements.txt").write_text("# Tiny.\n# Recipes: all\n# Budget: 60 s\ntinything==1.0\n")
    machine.environment |= {"WORKLOADS": "tiny", "RECIPE": "gpu"}
    return folder


@pytest.mark.slow
def test_an_image_has_a_workloads_environment(machine: Machine, tiny: Path) -> None:
    """It is finished after a failure, made once, without network afterwards, and follows its requirements."""
    requirements, venv = tiny / "requirements.txt", machine.opt / "venvs" / "tiny"
    shared = machine.folder / "fsx" / "venvs" / "tiny"
    fails(machine.run("50", PIP_FIND_LINKS=""), "could not create the environment of tiny")
    assert not (venv / "requirements.sha256").exists()
    succeeds(done := in_a_job(machine, "tiny"))
    assert done.stdout.strip() == str(shared), "the image has none"
    machine.does("50")
    assert "VALUE = 1" in next(venv.rglob("tinything.py")).read_text()
    before = machine.files()
    requirements.write_text(requirements.read_text().replace("# Tiny.", "# Another comment."))
    machine.does("50", PIP_FIND_LINKS="")
    assert machine.files() == before
    succeeds(done := in_a_job(machine, "tiny", PIP_FIND_LINKS=""))
    assert done.stdout.strip() == str(venv)
    machine.wheel("tinything", "2.0", {"tinything.py": "VALUE = 2\n"})
    requirements.write_text(requirements.read_text().replace("1.0", "2.0"))
    succeeds(done := in_a_job(machine, "tiny"))
    assert done.stdout.startswith(str(shared)), "the image's is of other requirements"
    machine.does("50")
    assert "VALUE = 2" in next(venv.rglob("tinything.py")).read_text()


@pytest.mark.slow
def test_an_install_script_has_its_own_budget(machine: Machine, tiny: Path) -> None:
    text = (tiny / "requirements.txt").read_text()
    (tiny / "requirements.txt").write_text(text.replace("60 s", "3 s"))
    install = tiny / "install.sh"
    install.write_text("# Budget: 1 s\nsleep 60\n")
    fails(machine.run("50"), "tiny was not complete within the 4 s")
    install.write_text('# Moment: image\n# Budget: 60 s\ntouch "$1/compiled"\n')
    done = machine.run("50", NODE_TYPE="ComputeFleet")
    fails(done, "could not create the environment of tiny")
    assert "deploy with -c image=build" in done.stderr
    machine.does("50")
    assert (machine.opt / "venvs/tiny/compiled").is_file()


def test_what_roberta_compiles_is_verified(machine: Machine) -> None:
    """pip runs the archive's own code to build it, in an image build as root."""
    python = machine.folder / "venv" / "bin" / "python"
    for name in ("g++", "env"):
        machine.program(name, 'if [[ $1 == -u ]]; then shift 2; fi\nexec "$@"')
    header = machine.folder / "Python.h"
    header.touch()
    answer = f'if [[ $2 == -c ]]; then echo "{header.parent}"; else cat "${{@: -1}}"; fi'
    machine.program("python", answer, at=python)
    done = run(TRAINING / "roberta" / "install.sh", python.parents[1], **machine.environment)
    succeeds(done)
    assert re.fullmatch(r"fairseq-fixed==\S+ --hash=sha256:[0-9a-f]{64}\n", done.stdout)
    assert "--require-hashes" in machine.calls()[-1]


OF_AWS = ("torch-neuronx", "neuronx-cc", "libneuronxla", "nki")


@pytest.mark.slow
def test_packages_of_awss_index_come_from_it(machine: Machine) -> None:
    """Another index has packages of the same names, and newer ones."""
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
    others = {name: version.partition("+")[0] + ".1" for name, version in versions.items()}
    for name, version in (*others.items(), ("libneuronxla", "99.0"), ("nki", "99.0")):
        machine.publish("usual", name, version, {f"{name}-from": "another"})
    install.write_text(install.read_text().replace("https://pip.repos.neuron.amazonaws.com", aws))
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        del machine.environment[name]
    venv = machine.folder / "made"
    subprocess.run(["python3", "-m", "venv", str(venv)], env=machine.environment, check=True)
    (venv / "bin" / "neuron_parallel_compile").touch(mode=0o755)
    succeeds(run(install, venv, **machine.environment, PIP_INDEX_URL=usual, IMAGE_RECIPE="neuron"))
    found = {path.name.removesuffix("-from"): path.read_text() for path in venv.rglob("*-from")}
    assert found == dict.fromkeys(OF_AWS, "aws")
