"""Steps 46 and 48: what is compiled from pinned sources."""

from __future__ import annotations

import subprocess

import pytest

from tests.unit.step_machine import ASSETS, Machine, fails, succeeds

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
# Asked for the folder of packages, it answers.
PYTHON = """
if [[ $1 == -m && $2 == venv ]]; then
  mkdir -p "$3/bin"
  printf '%s\\n' '#!/bin/bash' 'if [[ $1 == -c ]]; then echo "$ROOT/site"; exit; fi' \\
    'if [[ -n $CPATH ]]; then echo "CPATH $CPATH" >>"$ROOT/../calls"; fi' \\
    'echo "$NVTE_CUDA_ARCHS $TORCH_CUDA_ARCH_LIST pip $*" >>"$ROOT/../calls"' \\
    'while (($#)); do case $1 in --wheel-dir | --dest) touch "$2/$RANDOM.whl" ;; esac; shift; done' \\
    >"$3/bin/python"
  chmod 755 "$3/bin/python"
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
    torch, compiled, core = (call for call in calls if " pip " in call)
    assert "torch==2.13.0 transformer_engine[core_cu13]==2.20.2" in torch
    assert compiled.startswith("80;86;89;90;100;103 8.0;8.6;8.9;9.0;10.0;10.3 pip -m pip")
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
    fails(done, f"torch 2.13.0 brought no {machine.root}/site/nvidia/nccl/include/nccl.h", "CUDA build")
    assert not any("--wheel-dir" in call for call in machine.calls())


@pytest.mark.parametrize(("implementation", "code"), [("", 1), ("transformer_engine", 1), ("local", 0)])
def test_megatron_without_transformer_engine_is_for_those_who_ask_for_it(
    machine: Machine, implementation: str, code: int
) -> None:
    done = subprocess.run(
        ["bash", str(ASSETS / "training" / "gpt2-megatron" / "install.sh"), str(machine.folder / "venv")],
        env={**machine.environment, "IMAGE_RECIPE": "gpu", "TRANSFORMER_IMPL": implementation},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert ("TRANSFORMER_IMPL=local" in done.stderr) == bool(code)
