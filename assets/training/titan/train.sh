#!/usr/bin/env bash
# Starts the ranks of one node of the titan workload, or one of its ranks.
#
# Called by: job.slurm, as the user: once on every node (LAUNCHER=torchrun) or once a rank (srun). Safe to run
#   again: train.py resumes from the run's last checkpoint.
# Environment: what launch.sh and train.py read; ACCELERATOR_KIND, FAMILY, DEVICE.
# Arguments: train.py's.
# Launchers: torchrun srun
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here

if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-} != cpu ]]; then
  printf 'train.sh: titan runs on GPUs and CPUs, not on the %s family (Trainium).\n  %s\n' \
    "${FAMILY:-neuron}" 'Use a GPU or CPU family, or another workload.' >&2
  exit 1
fi

# torchrun drops a -- that follows the script at once, so an argument that changes nothing comes before it.
if [[ ${1:-} == -- ]]; then set -- --task "${TASK:-pretrain}" "$@"; fi

# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"
start_ranks "$here" "$here/train.py" "$@"
