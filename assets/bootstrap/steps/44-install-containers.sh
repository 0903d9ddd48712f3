#!/usr/bin/env bash
#
# Installs Enroot and Pyxis (containers under Slurm) where an AMI lacks them. ParallelCluster's AMI has both, switched
# off; switching on is a start step.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips what is there. Environment: BUNDLE, OS,
#   ENROOT_{URL,SHA256}, PYXIS_{URL,COMMIT}, TRAINING_ROOT, TRAINING_OPT.
# Moment: install
# Recipes: gpu volta
# Nodes: ComputeFleet
# Where: node
# Required: no
# Budget: 240 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/download.sh
source "$BUNDLE/bootstrap/lib/download.sh"
# shellcheck source=assets/bootstrap/lib/packages.sh
source "$BUNDLE/bootstrap/lib/packages.sh"

if [[ ! -x $TRAINING_ROOT/usr/bin/enroot ]]; then
  if ! uses_apt; then
    printf 'this image has no Enroot, and the pinned package is for Ubuntu: take the AMI of ParallelCluster\n' >&2
    exit 1
  fi
  download "$ENROOT_URL" "$ENROOT_SHA256" "$TRAINING_OPT/src/enroot.deb"
  install_packages jq squashfs-tools parallel fuse-overlayfs pigz squashfuse zstd "$TRAINING_OPT/src/enroot.deb"
  rm -f "$TRAINING_OPT/src/enroot.deb"
fi

if [[ ! -f $TRAINING_ROOT/usr/local/lib/slurm/spank_pyxis.so ]]; then
  readonly sources="$TRAINING_OPT/src/pyxis"
  checkout "$PYXIS_URL" "$PYXIS_COMMIT" "$sources"
  export CPPFLAGS="-I $TRAINING_ROOT/opt/slurm/include"
  make -C "$sources" install prefix=/usr/local DESTDIR="$TRAINING_ROOT" >&2 || {
    printf 'Pyxis did not compile: see the lines above\n' >&2
    exit 1
  }
  rm -rf "$sources"
fi
