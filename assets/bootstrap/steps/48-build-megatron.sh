#!/usr/bin/env bash
#
# Compiles Transformer Engine's PyTorch extension, which replaces Apex in Megatron, for the GPUs of the recipe, as wheels
# in /opt/training-cluster/wheels. An environment that requires the same versions of it and of torch installs these
# wheels (assets/training/environment.sh); Megatron's core has its own wheel.
#
# Called by: run-steps.sh, as root, in an image build; it requires nvcc, but no GPU. Safe to run again: it skips wheels
#   that are built in these versions. Environment: BUNDLE, TRANSFORMER_ENGINE_{VERSION,SHA256}, MEGATRON_CORE_VERSION,
#   MEGATRON_TORCH_VERSION, BUILD_{SETUPTOOLS,WHEEL,NINJA,PACKAGING,PYBIND11}_{VERSION,SHA256}, CUDA_CAPABILITIES_GPU,
#   TRAINING_ROOT, TRAINING_OPT; PIP_*, TRAINING_PYTHON. Optional, since 50-install-workloads.sh fails if an image is to
#   have gpt2-megatron and the wheel is missing.
# Moment: image
# Recipes: gpu
# Nodes: ComputeFleet
# Required: no
# Budget: 2400 s
# Reads: bootstrap/lib/installer.sh training/environment.sh training/environment_owners.sh training/local_environment.sh training/container_environment.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/training/environment.sh"
source "$BUNDLE/bootstrap/lib/installer.sh"

readonly wheels="$TRAINING_OPT/wheels" build="$TRAINING_OPT/src/megatron" cuda="$TRAINING_ROOT/usr/local/cuda"
readonly wanted="transformer-engine $TRANSFORMER_ENGINE_VERSION torch $MEGATRON_TORCH_VERSION megatron-core \
$MEGATRON_CORE_VERSION for $CUDA_CAPABILITIES_GPU"

pip() { "$build/venv/bin/python" -I -m pip --quiet --disable-pip-version-check "$@" >&2; }

# Installs the build tools before torch, which requires some of them.
install_build_tools() {
  printf '%s==%s --hash=sha256:%s\n' \
    setuptools "$BUILD_SETUPTOOLS_VERSION" "$BUILD_SETUPTOOLS_SHA256" \
    wheel "$BUILD_WHEEL_VERSION" "$BUILD_WHEEL_SHA256" \
    ninja "$BUILD_NINJA_VERSION" "$BUILD_NINJA_SHA256" \
    packaging "$BUILD_PACKAGING_VERSION" "$BUILD_PACKAGING_SHA256" \
    pybind11 "$BUILD_PYBIND11_VERSION" "$BUILD_PYBIND11_SHA256" >"$build/tools.txt"
  pip install --no-deps --only-binary :all: --require-hashes --requirement "$build/tools.txt"
}

# Prints the number of parallel compilers: one for each 4 GiB of memory, since each compiler needs 4 GiB.
compilers() {
  local gib
  gib=$(($(awk '/^MemTotal:/ { print $2 }' /proc/meminfo) / 1024 / 1024))
  printf '%s\n' $((gib / 4 > 0 ? gib / 4 : 1))
}

# Adds the headers of cuDNN and NCCL to the compilers' path: they are in wheels that torch requires, and Transformer
# Engine's set-up adds only the folder of the CUDA toolkit, which has neither.
find_headers() {
  local packages header
  packages="$("$build/venv/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  for header in nvidia/cudnn/include/cudnn.h nvidia/nccl/include/nccl.h; do
    if [[ ! -f $packages/$header ]]; then
      printf 'torch %s installed no %s: Transformer Engine requires the CUDA build of torch, not a CPU build\n' \
        "$MEGATRON_TORCH_VERSION" "$packages/$header" >&2
      return 1
    fi
  done
  export CPATH="$packages/nvidia/cudnn/include:$packages/nvidia/nccl/include${CPATH:+:$CPATH}"
}

# Compiles for the capabilities of all families of the recipe; Transformer Engine writes 9.0 as 90.
compile() {
  local -r archs="${CUDA_CAPABILITIES_GPU//./}"
  printf 'transformer_engine_torch==%s --hash=sha256:%s\n' "$TRANSFORMER_ENGINE_VERSION" "$TRANSFORMER_ENGINE_SHA256" \
    >"$build/wanted.txt"
  # Without FORCE_BUILD, Transformer Engine's setup.py downloads a wheel from GitHub, if there is one, without a hash.
  export NVTE_PYTORCH_FORCE_BUILD=TRUE
  export CUDA_HOME="$cuda" PATH="$cuda/bin:$PATH" NVTE_FRAMEWORK=pytorch NVTE_CUDA_ARCHS="${archs// /;}"
  export TORCH_CUDA_ARCH_LIST="${CUDA_CAPABILITIES_GPU// /;}" MAX_JOBS
  MAX_JOBS="$(compilers)"
  pip wheel --no-build-isolation --no-deps --require-hashes --wheel-dir "$build/wheels" \
    --requirement "$build/wanted.txt" || {
    printf 'Transformer Engine did not compile: see the lines above\n' >&2
    return 1
  }
}

build() {
  mkdir "$build/wheels"
  "$(find_python)" -I -m venv "$build/venv" >&2
  install_build_tools
  pip install "torch==$MEGATRON_TORCH_VERSION" "transformer_engine[core_cu13]==$TRANSFORMER_ENGINE_VERSION"
  find_headers
  compile
  pip download --no-deps --dest "$build/wheels" "megatron-core==$MEGATRON_CORE_VERSION"
}

if [[ ${1:-} == build ]]; then # as the installer
  build
  exit
fi
if [[ -r $wheels/.megatron && $(<"$wheels/.megatron") == "$wanted" ]]; then exit 0; fi
if [[ ! -x $cuda/bin/nvcc ]]; then
  printf 'there is no CUDA compiler %s/bin/nvcc: Transformer Engine cannot be compiled\n' "$cuda" >&2
  exit 1
fi
rm -rf "$build"
mkdir -p "$wheels"
as_installer "$build" bash "${BASH_SOURCE[0]}" build
mv -f "$build"/wheels/*.whl "$wheels/"
rm -rf "$build"
printf '%s\n' "$wanted" >"$wheels/.megatron.new"
mv -f "$wheels/.megatron.new" "$wheels/.megatron"
