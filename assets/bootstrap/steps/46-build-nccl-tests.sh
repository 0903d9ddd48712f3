#!/usr/bin/env bash
#
# Compiles NVIDIA's nccl-tests, which measure the bandwidth between GPUs, for the GPUs of the recipe:
# /opt/training-cluster/bin/all_reduce_perf and others, with MPI, and the pinned NCCL beside them (the AMI has none).
#
# Called by: run-steps.sh, as root, in an image build; it requires nvcc, but no GPU. Safe to run again: it skips tests
#   that are compiled in this version. Environment: BUNDLE, RECIPE, NCCL_TESTS_{URL,COMMIT}, NCCL_CU12_{VERSION,SHA256},
#   NCCL_CU13_{VERSION,SHA256}, CUDA_CAPABILITIES_GPU, CUDA_CAPABILITIES_VOLTA, TRAINING_ROOT, TRAINING_OPT; PIP_*.
# Moment: image
# Recipes: gpu volta
# Nodes: ComputeFleet
# Budget: 1200 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/installer.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"
source "$BUNDLE/bootstrap/lib/installer.sh"

readonly cuda="$TRAINING_ROOT/usr/local/cuda" mpi="$TRAINING_ROOT/opt/amazon/openmpi"
readonly nccl="$TRAINING_OPT/nccl" bin="$TRAINING_OPT/bin"
readonly sources="$TRAINING_OPT/src/nccl-tests"

case $RECIPE in
  gpu)
    suffix=cu13 nccl_version="$NCCL_CU13_VERSION" nccl_sha256="$NCCL_CU13_SHA256"
    capabilities="$CUDA_CAPABILITIES_GPU"
    ;;
  volta)
    suffix=cu12 nccl_version="$NCCL_CU12_VERSION" nccl_sha256="$NCCL_CU12_SHA256"
    capabilities="$CUDA_CAPABILITIES_VOLTA"
    ;;
esac
readonly wanted="$NCCL_TESTS_COMMIT nccl $nccl_version $suffix for $capabilities"

# Prints an option for each capability: 9.0 -> -gencode=arch=compute_90,code=sm_90.
gencode() {
  local each
  for each in ${capabilities//./}; do printf -- '-gencode=arch=compute_%s,code=sm_%s ' "$each" "$each"; done
}

install_nccl() {
  local -r files="$TRAINING_OPT/src/nccl-$suffix"
  unpack_wheel "nvidia-nccl-$suffix" "$nccl_version" "$nccl_sha256" "$files"
  rm -rf "$nccl"
  mv -T "$files/nvidia/nccl" "$nccl"
  # The linker looks for the name without a number.
  ln -sfn libnccl.so.2 "$nccl/lib/libnccl.so"
  rm -rf "$files"
}

if [[ -r $bin/.nccl-tests && $(<"$bin/.nccl-tests") == "$wanted" ]]; then exit 0; fi
if [[ ! -x $cuda/bin/nvcc ]]; then
  printf 'there is no CUDA compiler %s/bin/nvcc: nccl-tests cannot be compiled\n' "$cuda" >&2
  exit 1
fi
install_nccl
checkout "$NCCL_TESTS_URL" "$NCCL_TESTS_COMMIT" "$sources"
# nvcc reads NVCC_APPEND_FLAGS: the tests then find this NCCL from any folder.
export NVCC_GENCODE NVCC_APPEND_FLAGS="-Xlinker -rpath=${nccl#"$TRAINING_ROOT"}/lib"
NVCC_GENCODE="$(gencode)"
as_installer "$sources" make -C "$sources" -j "$(nproc)" MPI=1 MPI_HOME="$mpi" CUDA_HOME="$cuda" NCCL_HOME="$nccl" \
  BUILDDIR="$sources/build" >&2 || {
  printf 'nccl-tests did not compile: see the lines above\n' >&2
  exit 1
}
mkdir -p "$bin"
install -m 755 "$sources"/build/*_perf "$bin/"
rm -rf "$sources"
printf '%s\n' "$wanted" >"$bin/.nccl-tests.new"
mv -f "$bin/.nccl-tests.new" "$bin/.nccl-tests"
