#!/usr/bin/env bash
#
# Checks that the Neuron runtime has logged no uncorrectable error of a device since boot.
#
# After such an error AWS requires another instance (action=TERMINATE_INSTANCE), or a new start of it. The runtime writes
# it to the kernel's log; aws-neuron-sdk, nrt-troubleshoot, has the line, and neuron-problem-detector acts on the same.
# A collective that hangs (HANG_ON_COLLECTIVES) may be a program's fault, and is not a verdict.
#
# Called by: check-node.sh, as root.
# Kinds: neuron
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

readonly ERROR='NEURON_HW_ERR=([A-Z]+_UNCORRECTABLE_ERROR|DMA_ERROR)'

need journalctl "its Neuron devices had errors"
journal="$(journalctl --dmesg --boot --no-pager --quiet --output=cat)" || exit 1
while read -r line; do
  [[ $line =~ $ERROR ]] || continue
  error="${BASH_REMATCH[1]}"
  [[ $line =~ nd-id=([0-9]+) ]] && device=" of device ${BASH_REMATCH[1]}" || device=""
  unhealthy "the Neuron runtime logged $error$device"
done <<<"$(grep -F 'NEURON_HW_ERR=' <<<"$journal" || true)"
