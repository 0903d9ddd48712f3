#!/usr/bin/env bash
#
# Installs Enroot if it is missing, NVIDIA's nvidia-container-cli, with which Enroot gives containers access to GPUs, and
# squashfuse, with which Enroot mounts an image instead of unpacking it, where Pyxis can ask for that (0.22 or newer).
#
# ParallelCluster's AMI has Enroot, disabled (a start step enables it), and no nvidia-container-cli: every image that
# sets NVIDIA_VISIBLE_DEVICES, as all of NVIDIA's do, then fails in Enroot's hook 98-nvidia.sh. An AMI of
# `pcluster build-image` has neither by default. A failure to install one does not prevent the other.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips installed programs. Environment: BUNDLE, OS,
#   ENROOT_{URL,SHA256}, NVIDIA_CONTAINER_{VERSION,URL}, NVIDIA_CONTAINER_KEY_{URL,FINGERPRINT}, TRAINING_ROOT,
#   TRAINING_OPT.
# Recipes: gpu volta
# Nodes: ComputeFleet
# Required: no
# Budget: 180 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh bootstrap/lib/repository.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"
source "$BUNDLE/bootstrap/lib/packages.sh"
source "$BUNDLE/bootstrap/lib/repository.sh"

install_gpu_tool() {
  if command -v nvidia-container-cli >/dev/null; then return; fi
  local -r repository=nvidia-container
  local source="$NVIDIA_CONTAINER_URL/rpm/$HOSTTYPE" equals=-
  if uses_apt; then source="$NVIDIA_CONTAINER_URL/deb/$(dpkg --print-architecture) /" equals='='; fi
  add_repository "$repository" "$NVIDIA_CONTAINER_KEY_URL" "$NVIDIA_CONTAINER_KEY_FINGERPRINT" repo_gpgcheck \
    "$source" || return 1
  local status=0
  install_packages "libnvidia-container1$equals$NVIDIA_CONTAINER_VERSION-1" \
    "libnvidia-container-tools$equals$NVIDIA_CONTAINER_VERSION-1" || status=1
  # No other package may come from this repository, and a node may have no access to it later.
  remove_repository "$repository"
  ((status == 0)) || return 1
  if ! nvidia-container-cli --version >&2; then
    printf 'nvidia-container-cli does not run after its installation: see the lines above\n' >&2
    return 1
  fi
}

install_enroot() {
  if [[ -x $TRAINING_ROOT/usr/bin/enroot ]]; then return; fi
  if ! uses_apt; then
    printf 'this image has no Enroot, and the pinned package is for Ubuntu: use the ParallelCluster AMI\n' >&2
    return 1
  fi
  download "$ENROOT_URL" "$ENROOT_SHA256" "$TRAINING_OPT/src/enroot.deb" || return 1
  install_packages jq squashfs-tools parallel fuse-overlayfs pigz squashfuse zstd "$TRAINING_OPT/src/enroot.deb" ||
    return 1
  rm -f "$TRAINING_OPT/src/enroot.deb"
}

install_squashfuse() {
  if ! uses_apt || command -v squashfuse >/dev/null; then return; fi # Amazon Linux has no package of it
  if grep -qs use_squashfuse "$TRAINING_ROOT/usr/local/lib/slurm/spank_pyxis.so"; then install_packages squashfuse; fi
}

status=0
install_gpu_tool || status=1
install_enroot || status=1
install_squashfuse || status=1
exit "$status"
