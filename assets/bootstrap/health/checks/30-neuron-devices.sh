#!/usr/bin/env bash
#
# The driver has found all Neuron devices that the instance type has.
#
# It counts the driver's device files: neuron-ls has changed its output between releases (its JSON goes with 2.34).
#
# Called by: check-node.sh, as root.
# Kinds: neuron
# Where: node
set -euo pipefail
shopt -s nullglob
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

devices=("$TRAINING_ROOT"/dev/neuron[0-9]*)
((${#devices[@]} != 0)) ||
  unfit "there is no Neuron device of $ACCELERATORS_PER_NODE: is the driver of this kernel installed (lsmod | grep neuron)?"
((${#devices[@]} == ACCELERATORS_PER_NODE)) ||
  unfit "the driver found ${#devices[@]} of $ACCELERATORS_PER_NODE Neuron devices"
