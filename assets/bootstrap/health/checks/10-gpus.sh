#!/usr/bin/env bash
#
# Checks that the node has all GPUs of its instance type. One that fell off the bus is missing in nvidia-smi's list, or
# its line reports that its handle is not available.
#
# Called by: check-node.sh, as root.
# Kinds: gpu
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

need nvidia-smi "its $ACCELERATORS_PER_NODE GPUs work"
status=0
list="$(nvidia-smi --list-gpus 2>&1)" || status=$?
count="$(grep -cE '^GPU [0-9]+: ' <<<"$list" || true)"
if ((count != ACCELERATORS_PER_NODE)); then
  odd="$(grep -vE '^(GPU [0-9]+: |[[:space:]]*$|[[:space:]]+MIG )' <<<"$list" | head -n 1 || true)"
  unhealthy "nvidia-smi lists $count of $ACCELERATORS_PER_NODE GPUs${odd:+ ($odd)}"
fi
if ((status)); then unhealthy "nvidia-smi failed with $status: $(last_line "$list")"; fi
