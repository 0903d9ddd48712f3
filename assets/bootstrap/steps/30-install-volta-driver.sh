#!/usr/bin/env bash
#
# Replaces NVIDIA's driver with the proprietary driver of the last branch that supports Volta (p3dn): ParallelCluster's
# AMI has the open kernel modules of a newer branch, which do not support the V100.
#
# GDRCopy's module is compiled again for that driver; if that fails, GDRCopy is removed: ParallelCluster starts an
# installed GDRCopy service on every node with an NVIDIA GPU, and terminates a node on which the start fails (its
# cookbook: gdrcopy, :configure). EFA's module for GPU memory, efa_nv_peermem, requires open modules; the EFA of a p3dn has
# no RDMA for it.
#
# Called by: run-steps.sh, as root, in an image build; the build machine needs no GPU. Safe to run again: it skips a
#   driver that this kernel already has. Environment: BUNDLE, NVIDIA_DRIVER_{VERSION,URL,SHA256},
#   TRAINING_ROOT, TRAINING_OPT.
# Moment: image
# Recipes: volta
# Nodes: ComputeFleet
# Budget: 1500 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit nullglob
source "$BUNDLE/bootstrap/lib/download.sh"
source "$BUNDLE/bootstrap/lib/packages.sh"

readonly LAST_BRANCH=580
kernel="$(uname -r)"
readonly kernel
readonly installer="$TRAINING_OPT/src/nvidia-driver-$NVIDIA_DRIVER_VERSION.run"
# Packages and installer put the sources that dkms compiles here.
readonly sources="$TRAINING_ROOT/usr/src"

die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# The licence distinguishes proprietary modules (NVIDIA) from open ones (Dual MIT/GPL).
is_installed() {
  [[ $(modinfo -k "$kernel" -F version nvidia 2>/dev/null) == "$NVIDIA_DRIVER_VERSION" ]] &&
    [[ $(modinfo -k "$kernel" -F license nvidia 2>/dev/null) == NVIDIA ]]
}

# Ubuntu compiles its kernels with another gcc than the default one, and modules require the same.
choose_compiler() {
  local compiler
  compiler="$(grep -oE 'gcc-[0-9]+' "$TRAINING_ROOT/proc/version" | head -n 1)" || return 0
  if ! command -v "$compiler" >/dev/null; then install_packages "$compiler"; fi
  export CC="$compiler"
}

install_kernel_headers() {
  if [[ -d $TRAINING_ROOT/lib/modules/$kernel/build ]]; then return; fi
  if uses_apt; then
    install_packages "linux-headers-$kernel"
  else
    install_packages "$(kernel_package "$kernel")-devel-$kernel"
  fi
}

# Stops services of the removed driver: a p3dn has no NVSwitch, and no NVLink across nodes.
stop_services() {
  local service
  for service in nvidia-fabricmanager nvidia-imex; do
    if systemctl cat "$service" >/dev/null 2>&1; then systemctl disable --now "$service"; fi
  done
}

# Removes the AMI's driver: packages since ParallelCluster 3.16, NVIDIA's installer before. The driver's packages are
# all those of its version; NVIDIA's others (CUDA, DCGM, containers) have other versions, and stay.
remove_driver() {
  local version
  local -a packages
  version="$(modinfo -k "$kernel" -F version nvidia 2>/dev/null)" || return 0 # the AMI has no driver
  if command -v nvidia-uninstall >/dev/null; then nvidia-uninstall --silent; fi
  # Only the version, between the epoch and the distribution's release.
  mapfile -t packages < <(list_packages | awk -v version="$version" \
    '{ sub(/^[0-9]+:/, "", $2); sub(/-.*/, "", $2) } $2 == version { print $1 }')
  if ((${#packages[@]} == 0)); then return 0; fi
  if uses_apt; then
    apt purge -y --allow-change-held-packages "${packages[@]}"
  else
    dnf remove -y -q --noautoremove "${packages[@]}" >&2
  fi || die "could not remove the driver $version of the AMI: see the lines above"
}

# Prints NAME VERSION-RELEASE of each package.
list_packages() {
  if uses_apt; then
    dpkg-query --show --showformat '${binary:Package} ${Version}\n'
  else
    rpm --query --all --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n'
  fi
}

# On newer kernels NVIDIA's installer tests its modules before it loads this module, which they need.
load_drm() {
  if modinfo -k "$kernel" drm_client_lib >/dev/null 2>&1; then modprobe drm_client_lib; fi
}

install_driver() {
  download "$NVIDIA_DRIVER_URL" "$NVIDIA_DRIVER_SHA256" "$installer"
  choose_compiler
  install_kernel_headers
  stop_services
  remove_driver
  load_drm
  sh "$installer" --silent --dkms --disable-nouveau --no-cc-version-check --kernel-module-type=proprietary \
    --kernel-name="$kernel" ||
    die "NVIDIA's installer failed: see the lines above, and /var/log/nvidia-installer.log on the build machine"
  is_installed ||
    die "kernel $kernel has no proprietary NVIDIA driver $NVIDIA_DRIVER_VERSION after its installation (modinfo nvidia)"
  rm -f "$installer"
}

# Prints the version of GDRCopy's sources on the AMI; nothing without them.
gdrcopy_version() {
  local folder
  for folder in "$sources"/gdrdrv-*; do printf '%s\n' "${folder##*/gdrdrv-}"; done
}

# compile_gdrcopy VERSION: removes the old driver's module first, since dkms compiles nothing twice for a kernel.
compile_gdrcopy() {
  local -ra module=(-m gdrdrv -v "$1" -k "$kernel")
  dkms remove "${module[@]}" >&2 || true # there may be none
  NVIDIA_SRC_DIR="$sources/nvidia-$NVIDIA_DRIVER_VERSION/nvidia" dkms install "${module[@]}" >&2 && gdrcopy_fits
}

# The description of GDRCopy's module names the kind of driver that it was compiled for.
gdrcopy_fits() { [[ $(modinfo -k "$kernel" -F description gdrdrv 2>/dev/null) == *" proprietary "* ]]; }

fit_gdrcopy() {
  local -r version="$(gdrcopy_version)"
  if [[ -z $version ]] || compile_gdrcopy "$version"; then return; fi
  printf 'GDRCopy could not be compiled for driver %s, and is removed: libfabric copies without it\n' \
    "$NVIDIA_DRIVER_VERSION" >&2
  if uses_apt; then apt purge -y gdrdrv-dkms; else dnf remove -y -q --noautoremove gdrcopy-kmod >&2; fi ||
    die "GDRCopy could not be removed: ParallelCluster would start its service on every p3dn, and terminate the node"
}

if ((${NVIDIA_DRIVER_VERSION%%.*} > LAST_BRANCH)); then
  die "driver $NVIDIA_DRIVER_VERSION does not support Volta: the last branch is $LAST_BRANCH (versions.yaml)"
fi
if is_installed && { [[ -z $(gdrcopy_version) ]] || gdrcopy_fits; }; then exit 0; fi
if ! is_installed; then install_driver; fi
fit_gdrcopy
