"""Steps 46 and 48: what is compiled from pinned sources."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, fails, succeeds
from training_cluster.paths import ASSETS

NCCL_TESTS = """\
default:
	mkdir -p $(BUILDDIR)
	echo "$$NVCC_GENCODE|$$NVCC_APPEND_FLAGS|$(MPI)|$(MPI_HOME)|$(CUDA_HOME)" >$(BUILDDIR)/all_reduce_perf
	cp $(NCCL_HOME)/lib/libnccl.so $(BUILDDIR)/broadcast_perf
"""


@pytest.mark.slow
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
# Asked for the folder of packages, it answers.
PYTHON = """
if [[ $* == '-I -m venv '* ]]; then
  mkdir -p "$4/bin"
  printf '%s\\n' '#!/bin/bash' 'if [[ $2 == -c ]]; then echo "$ROOT/site"; exit; fi' \\
    'if [[ -n $CPATH ]]; then echo "CPATH $CPATH" >>"$ROOT/../calls"; fi' \\
    'echo "$NVTE_PYTORCH_FORCE_BUILD $NVTE_CUDA_ARCHS $TORCH_CUDA_ARCH_LIST pip $*" >>"$ROOT/../calls"' \\
    'while (($#)); do case $1 in --wheel-dir | --dest) touch "$2/$RANDOM.whl" ;;' \\
    '--requirement) cat "$2" >>"$ROOT/../calls" ;; esac; shift; done' \\
    >"$4/bin/python"
  chmod 755 "$4/bin/python"
fi
"""


def torch_brings(machine: Machine, *headers: str) -> None:
    """Put headers where the wheels of NVIDIA's libraries have them, as torch's CUDA build requires them."""
    for header in headers:
        file = machine.root / "site" / "nvidia" / header
        file.parent.mkdir(parents=True)
        file.touch()


def test_megatrons_binding_is_compiled_for_every_gpu_of_the_catalog(machine: Machine) -> None:
    machine.program("nvcc", at=machine.root / "usr/local/cuda/bin/nvcc")
    machine.program("python3", PYTHON)
    torch_brings(machine, "cudnn/include/cudnn.h", "nccl/include/nccl.h")
    succeeds(machine.run("48", RECIPE="gpu"))
    calls = machine.calls()
    tools, torch, compiled, core = (call for call in calls if " pip " in call)
    assert "--no-deps --only-binary :all: --require-hashes" in tools
    verified = re.findall(r"^([\w-]+)==\S+ --hash=sha256:[0-9a-f]{64}$", "\n".join(calls), re.MULTILINE)
    assert verified == ["setuptools", "wheel", "ninja", "packaging", "pybind11", "transformer_engine_torch"]
    assert torch.endswith("install torch==2.13.0 transformer_engine[core_cu13]==2.20.2")
    assert compiled.startswith("TRUE 80;86;89;90;100;103 8.0;8.6;8.9;9.0;10.0;10.3 pip -I -m pip")
    assert "wheel --no-build-isolation --no-deps --require-hashes --wheel-dir" in compiled
    assert core.endswith("megatron-core==0.16.1")
    # The compilers' own variable: Transformer Engine's set-up adds the folder of the CUDA toolkit alone.
    site = machine.root / "site" / "nvidia"
    assert f"CPATH {site}/cudnn/include:{site}/nccl/include" in calls
    assert len(list((machine.opt / "wheels").glob("*.whl"))) == 2
    assert not (machine.opt / "src" / "megatron").exists()
    before = machine.files()
    succeeds(machine.run("48", RECIPE="gpu"))
    assert [call for call in machine.calls() if " pip " in call] == []
    assert machine.files() == before


def test_megatrons_binding_is_not_compiled_without_the_headers_of_cudnn_and_nccl(machine: Machine) -> None:
    machine.program("nvcc", at=machine.root / "usr/local/cuda/bin/nvcc")
    machine.program("python3", PYTHON)
    torch_brings(machine, "cudnn/include/cudnn.h")
    done = machine.run("48", RECIPE="gpu")
    fails(done, f"torch 2.13.0 installed no {machine.root}/site/nvidia/nccl/include/nccl.h", "CUDA build")
    assert not any("--wheel-dir" in call for call in machine.calls())


# On a node, not in an image build.
JOB = {"IMAGE_RECIPE": "gpu", "NODE_TYPE": "ComputeFleet"}


@pytest.mark.parametrize(("implementation", "code"), [("", 1), ("transformer_engine", 1), ("local", 0)])
def test_megatron_without_transformer_engine_is_for_those_who_ask_for_it(
    machine: Machine, implementation: str, code: int
) -> None:
    done = subprocess.run(
        ["bash", str(ASSETS / "training" / "gpt2-megatron" / "install.sh"), str(machine.folder / "venv")],
        env={**machine.environment, **JOB, "TRANSFORMER_IMPL": implementation},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert ("TRANSFORMER_IMPL=local" in done.stderr) == bool(code)


def megatrons_packages(machine: Machine) -> None:
    """Publish empty packages of the names and versions that the workload's environment has, for no lock."""
    (machine.bundle / "training" / "gpt2-megatron" / "requirements.lock").unlink()
    file = ASSETS / "training" / "gpt2-megatron" / "requirements.txt"
    for name, version in re.findall(r"^([\w-]+)==([\w.]+)", file.read_text(), re.MULTILINE):
        machine.wheel(name, version, {})
    machine.wheel("transformer_engine", "2.20.2", {"transformer_engine.py": ""})


def in_megatrons_job(
    machine: Machine, **environment: str
) -> tuple[subprocess.CompletedProcess[str], Path, bool]:
    """Make the environment as prepare.sh does: the end, its folder, whether it has Transformer Engine."""
    find = 'source "$1/environment.sh"; venv="$(environment_of "$2")"; echo "$venv"'
    code = f'{find}; make_environment "$2" "$venv"'
    training = machine.bundle / "training"
    done = subprocess.run(
        ["bash", "-euc", code, "_", str(training), str(training / "gpt2-megatron")],
        env={**machine.environment, "TRAINING_VENVS": str(machine.folder / "fsx"), **environment},
        capture_output=True,
        text=True,
    )
    venv = Path(done.stdout.strip())
    return done, venv, bool(list(venv.rglob("transformer_engine.py")))


@pytest.mark.slow
@pytest.mark.parametrize("first", [{"TRANSFORMER_IMPL": "local"}, {"IMAGE_RECIPE": "cpu"}])
def test_an_environment_without_transformer_engine_is_not_that_of_a_run_with_it(
    machine: Machine, first: dict[str, str]
) -> None:
    megatrons_packages(machine)
    done, without, has_it = in_megatrons_job(machine, **{**JOB, **first})
    succeeds(done)
    assert not has_it
    done, venv, has_it = in_megatrons_job(machine, **JOB)
    assert done.returncode == 1, f"the run takes {venv}, without Transformer Engine"
    assert "Deploy with -c image=build" in done.stderr
    compiled = machine.opt / "wheels" / "transformer_engine_torch-2.20.2-cp312-cp312-linux_x86_64.whl"
    compiled.parent.mkdir()
    compiled.touch()
    done, venv, has_it = in_megatrons_job(machine, **JOB)
    succeeds(done)
    assert has_it
    assert venv != without
    before = machine.files()
    done, again, has_it = in_megatrons_job(machine, **{**JOB, **first})
    succeeds(done)
    assert (again, has_it) == (without, False)
    assert machine.files() == before


@pytest.mark.slow
def test_an_image_with_megatron_fails_where_its_binding_did_not_compile(machine: Machine) -> None:
    megatrons_packages(machine)
    assert machine.run("48", RECIPE="gpu").returncode == 1
    done = machine.run("50", RECIPE="gpu", WORKLOADS="gpt2-megatron")
    fails(done, "could not create the environment of gpt2-megatron")
    assert "48-build-megatron, above, shows why its build failed" in done.stderr
    assert "-c image=build" not in done.stderr
