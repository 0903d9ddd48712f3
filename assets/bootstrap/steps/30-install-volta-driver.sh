#!/usr/bin/env bash
#
# Replaces NVIDIA's driver by the proprietary one of the last branch that drives Volta (p3dn): ParallelCluster's AMI
# has the open kernel modules of a newer branch, which have no V100.
#
# Called by: run-steps.sh, as root, in an image build; the build machine needs no GPU. Safe to run again: it skips a
#   driver that is the wanted one for this kernel. Environment: BUNDLE, NVIDIA_DRIVER_{VERSION,URL,SHA256},
#   TRAINING_ROOT, TRAINING_OPT.
# Moment: image
# Recipes: volta
# Nodes: ComputeFleet
# Where: node
# Required: yes
# Budget: 1500 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/download.sh
source "$BUNDLE/bootstrap/lib/download.sh"
# shellcheck source=assets/bootstrap/lib/packages.sh
source "$BUNDLE/bootstrap/lib/packages.sh"

readonly LAST_BRANCH=580
kernel="$(uname -r)"
readonly kernel
readonly installer="$TRAINING_OPT/src/nvidia-driver-$NVIDIA_DRIVER_VERSION.run"

die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# The modules' licence tells proprietary ones (NVIDIA) from open ones (Dual MIT/GPL).
is_installed() {
  [[ $(modinfo -k "$kernel" -F version nvidia 2>/dev/null) == "$NVIDIA_DRIVER_VERSION" ]] &&
    [[ $(modinfo -k "$kernel" -F license nvidia 2>/dev/null) == NVIDIA ]]
}

# Ubuntu compiles its kernels with another gcc than the default one; modules need the same.
choose_compiler() {
  local compiler
  compiler="$(grep -oE 'gcc-[0-9]+' "$TRAINING_ROOT/proc/version" | head -n 1)" || return 0
  if ! command -v "$compiler" >/dev/null; then install_packages "$compiler"; fi
  export CC="$compiler"
}

install_kernel_headers() {
  if [[ -d $TRAINING_ROOT/lib/modules/$kernel/build ]]; then return; fi
  if uses_apt; then install_packages "linux-headers-$kernel"; else install_packages "kernel-devel-$kernel"; fi
}

# The services of the driver that goes: a p3dn has no NVSwitch, and no NVLink over nodes.
stop_services() {
  local service
  for service in nvidia-fabricmanager nvidia-imex; do
    if systemctl cat "$service" >/dev/null 2>&1; then systemctl disable --now "$service"; fi
  done
}

if ((${NVIDIA_DRIVER_VERSION%%.*} > LAST_BRANCH)); then
  die "driver $NVIDIA_DRIVER_VERSION has no Volta: branch $LAST_BRANCH is the last one (cluster_configs/versions.yaml)"
fi
if is_installed; then exit 0; fi
download "$NVIDIA_DRIVER_URL" "$NVIDIA_DRIVER_SHA256" "$installer"
choose_compiler
install_kernel_headers
stop_services
if command -v nvidia-uninstall >/dev/null; then nvidia-uninstall --silent; fi
sh "$installer" --silent --dkms --disable-nouveau --no-cc-version-check --kernel-module-type=proprietary \
  --kernel-name="$kernel" ||
  die "NVIDIA's installer failed: see the lines above, and /var/log/nvidia-installer.log on the build machine"
if ! is_installed; then
  die "after its installation, kernel $kernel has no proprietary NVIDIA driver $NVIDIA_DRIVER_VERSION (modinfo nvidia)"
fi
rm -f "$installer"
