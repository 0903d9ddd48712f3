#!/usr/bin/env bash
#
# Installs libraries that make training on CPUs faster: a memory allocator for many threads (tcmalloc, else jemalloc),
# and, on x86_64, Intel's OpenMP runtime. Their names are stable, and a job preloads them if it asks for them:
#   /opt/training-cluster/lib/liballocator.so
#   /opt/training-cluster/lib/libiomp5.so
#
# Called by: run-steps.sh, as root. Safe to run again: it skips installed libraries. Environment: BUNDLE,
#   INTEL_OPENMP_{VERSION,SHA256}, TRAINING_ROOT, TRAINING_OPT; PIP_* (pip's own settings).
# Recipes: cpu
# Nodes: ComputeFleet
# Required: no
# Budget: 180 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"
source "$BUNDLE/bootstrap/lib/packages.sh"

readonly lib="$TRAINING_OPT/lib"

# Prints the newest installed allocator, tcmalloc first.
find_allocator() {
  local name found
  for name in libtcmalloc_minimal.so libtcmalloc.so libjemalloc.so; do
    # One of the two folders may not exist.
    found="$(find "$TRAINING_ROOT"/usr/lib{,64} -name "$name.*" 2>/dev/null | sort --version-sort | tail -n 1)" || true
    if [[ -n $found ]]; then
      printf '%s\n' "$found"
      return
    fi
  done
  return 1
}

# Ubuntu 24.04 renamed its packages; Amazon Linux has one of the last two.
install_allocator() {
  local package
  for package in libtcmalloc-minimal4t64 libtcmalloc-minimal4 gperftools-libs jemalloc; do
    if install_packages "$package"; then return; fi
  done
  return 1
}

install_openmp() {
  local -r files="$TRAINING_OPT/src/intel-openmp-$INTEL_OPENMP_VERSION"
  local found
  if [[ -f $lib/libiomp5.so && $(<"$lib/.libiomp5.version") == "$INTEL_OPENMP_VERSION" ]]; then return; fi
  unpack_wheel intel-openmp "$INTEL_OPENMP_VERSION" "$INTEL_OPENMP_SHA256" "$files"
  found="$(find "$files" -name libiomp5.so)"
  if [[ -z $found ]]; then
    printf 'the wheel intel-openmp %s has no libiomp5.so\n' "$INTEL_OPENMP_VERSION" >&2
    return 1
  fi
  install -m 644 "$found" "$lib/.libiomp5.so"
  mv -f "$lib/.libiomp5.so" "$lib/libiomp5.so"
  printf '%s\n' "$INTEL_OPENMP_VERSION" >"$lib/.libiomp5.version"
  rm -rf "$files"
}

mkdir -p "$lib"
if ! allocator="$(find_allocator)"; then
  install_allocator
  allocator="$(find_allocator)"
fi
ln -sfn "${allocator#"$TRAINING_ROOT"}" "$lib/liballocator.so"
if [[ $HOSTTYPE == x86_64 ]]; then install_openmp; fi
