#!/usr/bin/env bash
#
# Checks that the driver has found all Neuron devices of the instance type.
#
# It counts the driver's device files, since neuron-ls changes its output between releases (2.34 removes its JSON).
#
# Called by: check-node.sh, as root.
# Kinds: neuron
set -euo pipefail
shopt -s nullglob
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

devices=("$TRAINING_ROOT"/dev/neuron[0-9]*)
((${#devices[@]} != 0)) ||
  unhealthy "found no Neuron device of $ACCELERATORS_PER_NODE: is this kernel's driver installed (lsmod | grep neuron)?"
((${#devices[@]} == ACCELERATORS_PER_NODE)) ||
  unhealthy "the driver found ${#devices[@]} of $ACCELERATORS_PER_NODE Neuron devices"
