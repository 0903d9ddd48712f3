#!/usr/bin/env bash
#
# The driver has logged no error since boot after which a GPU wants a reset, a reboot or a replacement.
#
# Codes and their meaning: NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors), those whose immediate action is
# to reset the GPU, to restart the machine or to turn to the vendor. Not among them is what a faulty program causes
# as well (13, 31, 43, 45), what ends a job alone (94, a contained memory error), and what reports a remapping that
# went well (63): 15-gpu-memory.sh asks for what is left of these. 154 is the driver's own verdict.
#
# Called by: check-node.sh, as root.
# Kinds: gpu
# Where: node
set -euo pipefail
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

declare -rA FATAL=(
  [46]="the GPU stopped processing"
  [48]="uncorrected memory error"
  [62]="its power controller halted"
  [64]="it could not record a row for remapping"
  [74]="NVLink error"
  [79]="the GPU has fallen off the bus"
  [95]="uncontained memory error"
  [119]="its system processor does not answer"
  [120]="error of its system processor"
  [136]="error in NVLink training"
  [140]="unrecovered memory error"
  [143]="it could not be initialised"
  [155]="NVLink is down"
  [156]="memory out of use, which wants a reset"
  [158]="uncorrected memory error"
)
readonly XID='NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): ([0-9]+)(.*)'
readonly ASKED='to 0x[0-9a-f]+ \((GPU Reset Required|Node Reboot Required|Drain and Reset)\)'

need journalctl "its GPUs' driver logged errors"
journal="$(journalctl --dmesg --boot --no-pager --quiet --output=cat)" || exit 1
while read -r line; do
  [[ $line =~ $XID ]] || continue
  gpu="${BASH_REMATCH[1]}" code="${BASH_REMATCH[2]}"
  if [[ $code == 154 && $line =~ $ASKED ]]; then unfit "the driver wants for the GPU $gpu: ${BASH_REMATCH[1]}"; fi
  if [[ -v FATAL[$code] ]]; then unfit "the driver logged XID $code for the GPU $gpu: ${FATAL[$code]}"; fi
done <<<"$(grep -F 'NVRM: Xid' <<<"$journal" || true)"
