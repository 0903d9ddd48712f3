#!/usr/bin/env bash
#
# Checks that the image has the software for EFA: the EFA installer's packages, libfabric, and NCCL's plugin for it (GPU
# recipes; Neuron's collectives have their own). ParallelCluster's AMI has all of it. The step installs nothing, since a
# kernel module must fit the AMI's kernel, and belongs in the AMI.
#
# Called by: run-steps.sh, as root. Changes nothing. Environment: BUNDLE, RECIPE, EFA_INSTALLER_FLOOR_VERSION,
#   LIBFABRIC_FLOOR_VERSION, TRAINING_ROOT.
# Nodes: ComputeFleet
# Budget: 20 s
# Reads: bootstrap/lib/download.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"

readonly amazon="$TRAINING_ROOT/opt/amazon"
readonly MEND="take ParallelCluster's AMI (-c image=official or build), or run EFA's installer in yours: \
docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html"

die() {
  printf 'this image %s: %s\n' "$1" "$MEND" >&2
  exit 1
}

# True if the node has an EFA network card (efa0, efa1, ...). A CPU node without one needs none of this software.
has_card() { lspci -d 1d0f: -n 2>/dev/null | grep -q ' 1d0f:efa'; }

if [[ $RECIPE == cpu ]] && ! has_card; then exit 0; fi

[[ -x $amazon/efa/bin/fi_info ]] || die "has no EFA software (/opt/amazon/efa)"
installer="$(sed -n 's/^# EFA installer version: *//p' "$amazon/efa_installed_packages" 2>/dev/null)" || true
[[ -n $installer ]] || die "does not record its EFA installer's version (/opt/amazon/efa_installed_packages)"
at_least "$installer" "$EFA_INSTALLER_FLOOR_VERSION" ||
  die "has EFA installer $installer, older than $EFA_INSTALLER_FLOOR_VERSION"
libfabric="$("$amazon/efa/bin/fi_info" --version | sed -n 's/^libfabric: *\([0-9.]*\).*/\1/p')" || true
at_least "${libfabric:-0}" "$LIBFABRIC_FLOOR_VERSION" ||
  die "has libfabric ${libfabric:-of unknown version}, older than $LIBFABRIC_FLOOR_VERSION"
if [[ $RECIPE == gpu || $RECIPE == volta ]]; then
  [[ -n $(find -L "$amazon/ofi-nccl" -name 'libnccl-net*.so' 2>/dev/null) ]] ||
    die "has no plugin between NCCL and EFA (/opt/amazon/ofi-nccl)"
fi
printf 'EFA installer %s, libfabric %s\n' "$installer" "$libfabric" >&2
