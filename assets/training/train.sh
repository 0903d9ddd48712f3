#!/usr/bin/env bash
# Starts the ranks of one node of a workload for GPUs and CPUs, or one of its ranks: its train.py.
#
# Sourced by: train.sh of a workload, which job.slurm calls, as the user: once on every node (LAUNCHER=torchrun) or once a
#   rank (srun, mpirun). Safe to run again: train.py resumes from the run's last checkpoint.
# Environment: what launch.sh and train.py read; ACCELERATOR_KIND, FAMILY, DEVICE.
# Arguments: train.py's.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)"
readonly here

if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-} != cpu ]]; then
  printf 'train.sh: %s runs on GPUs and CPUs, not on the %s family (Trainium).\n  %s\n' "$(basename "$here")" \
    "${FAMILY:-neuron}" 'Use a GPU or CPU family, or another workload.' >&2
  exit 1
fi

# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"
start_ranks "$here" "$here/train.py" "$@"
