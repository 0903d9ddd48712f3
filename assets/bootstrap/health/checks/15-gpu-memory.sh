#!/usr/bin/env bash
#
# Checks that no GPU has had uncorrected memory errors since its driver was loaded, or has memory to take out of use.
#
# Uncorrected errors end the job that meets them, and the memory stays in use until a reset of the GPU: its remapped
# rows (A100 and newer) or retired pages (V100) are pending until then. A GPU whose remapping failed must be replaced.
# Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt and .../dynamic-page-retirement. Values are numbers, No, Yes,
# or N/A on a GPU without the feature. A driver that does not support the query is not a verdict: 10-gpus.sh checks that
# nvidia-smi works at all.
#
# Called by: check-node.sh, as root.
# Kinds: gpu
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

need nvidia-smi "its GPUs' memory is sound"

# ask ARGUMENT: prints one line for each GPU.
ask() { nvidia-smi "$1" --format=csv,noheader,nounits | sed 's/, */,/g'; }

# In variables, since a loop over <(...) would ignore a failure.
errors="$(ask --query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total,retired_pages.pending)"
rows="$(ask --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure)"

while IFS=, read -r gpu uncorrected pending; do
  if [[ $uncorrected =~ ^[1-9][0-9]*$ ]]; then
    unhealthy "the GPU $gpu has $uncorrected uncorrected memory errors (ECC) since its driver was loaded"
  fi
  if [[ $pending =~ ^(Yes|1)$ ]]; then unhealthy "the GPU $gpu has retired pages pending: it needs a reset"; fi
done <<<"$errors"
while IFS=, read -r gpu pending failure; do
  if [[ $failure =~ ^(Yes|1)$ ]]; then unhealthy "the GPU $gpu could not remap rows of its memory: replace it"; fi
  if [[ $pending =~ ^(Yes|1)$ ]]; then unhealthy "the GPU $gpu has remapped rows pending: it needs a reset"; fi
done <<<"$rows"
