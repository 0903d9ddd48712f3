#!/usr/bin/env bash
#
# Checks that the driver has logged no error since boot that requires a reset, a reboot or a replacement of a GPU.
#
# The codes are the ones of NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors) whose immediate action is to reset
# the GPU, to restart the machine or to contact the vendor. Excluded are errors that a faulty program can cause too
# (13, 31, 43, 45), those that end a single job (94, a contained memory error), and successful remappings (63), whose
# remains 15-gpu-memory.sh checks. 154 is the driver's own verdict.
#
# Called by: check-node.sh, as root.
# Kinds: gpu
set -euo pipefail
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
  [156]="memory out of use, which needs a reset"
  [158]="uncorrected memory error"
)
readonly XID='NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): ([0-9]+)(.*)'
readonly ASKED='to 0x[0-9a-f]+ \((GPU Reset Required|Node Reboot Required|Drain and Reset)\)'

need journalctl "its GPUs' driver logged errors"
journal="$(journalctl --dmesg --boot --no-pager --quiet --output=cat)" || exit 1
while read -r line; do
  [[ $line =~ $XID ]] || continue
  gpu="${BASH_REMATCH[1]}" code="${BASH_REMATCH[2]}"
  if [[ $code == 154 && $line =~ $ASKED ]]; then unhealthy "the driver asks for the GPU $gpu: ${BASH_REMATCH[1]}"; fi
  if [[ -v FATAL[$code] ]]; then unhealthy "the driver logged XID $code for the GPU $gpu: ${FATAL[$code]}"; fi
done <<<"$(grep -F 'NVRM: Xid' <<<"$journal" || true)"
