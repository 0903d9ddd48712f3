#!/usr/bin/env bash
# Starts the ranks of the workload_template workload on one node.
#
# Called by: job.slurm through srun, as the user, on every node. Safe to run again: train.py continues from the run's
#   newest checkpoint.
# Needs: what launch.sh reads (LAUNCHER, MASTER_ADDR, NNODES and so on; job.slurm sets it).
# Arguments: train.py's.
# Launchers: torchrun srun
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"

# Refuse at once an instance family that this workload does not support.
if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-} != cpu ]]; then
  printf 'train.sh: workload_template runs on GPUs and CPUs, not on the %s family (Trainium).\n  %s\n' \
    "${FAMILY:-neuron}" 'Use a GPU or CPU family, or another workload.' >&2
  exit 1
fi

start_ranks "$here" "$here/train.py" "$@"
