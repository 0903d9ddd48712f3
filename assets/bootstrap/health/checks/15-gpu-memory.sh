#!/usr/bin/env bash
#
# No GPU has memory that it lost since its driver was loaded, or that it waits to take out of use.
#
# Uncorrected errors end the job that meets them, and the memory stays in use until the GPU is reset: by remapped
# rows (A100 and newer) or retired pages (V100), pending until then. A remapping that failed is a case for another
# GPU. Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt and .../dynamic-page-retirement. Values are numbers,
# No, Yes, or N/A where a GPU has no such thing. A driver that cannot be asked so is no verdict: that nvidia-smi works
# at all is 10-gpus.sh's matter.
#
# Called by: check-node.sh, as root.
# Kinds: gpu
# Where: node
set -euo pipefail
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

need nvidia-smi "its GPUs' memory is sound"

# ask ARGUMENT: one line a GPU.
ask() { nvidia-smi "$1" --format=csv,noheader,nounits | sed 's/, */,/g'; }

# In variables: a loop over <(...) would not see that one failed.
errors="$(ask --query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total,retired_pages.pending)"
rows="$(ask --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure)"

while IFS=, read -r gpu uncorrected pending; do
  if [[ $uncorrected =~ ^[1-9][0-9]*$ ]]; then
    unfit "the GPU $gpu has $uncorrected uncorrected memory errors (ECC) since its driver was loaded"
  fi
  if [[ $pending =~ ^(Yes|1)$ ]]; then unfit "the GPU $gpu has retired pages pending: it wants a reset"; fi
done <<<"$errors"
while IFS=, read -r gpu pending failure; do
  if [[ $failure =~ ^(Yes|1)$ ]]; then unfit "the GPU $gpu could not remap rows of its memory: it is to be replaced"; fi
  if [[ $pending =~ ^(Yes|1)$ ]]; then unfit "the GPU $gpu has remapped rows pending: it wants a reset"; fi
done <<<"$rows"
