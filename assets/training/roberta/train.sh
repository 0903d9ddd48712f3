#!/usr/bin/env bash
# Starts the ranks of one node of the roberta workload.
#
# Called by: job.slurm through srun, as the user, once on every node (torchrun) or once a rank (srun). Safe to run
#   again: train.py resumes from the run's last checkpoint.
# Needs: what launch.sh reads, and what train.py reads (RUN_DIR, DATA_DIR, CHECKPOINT_DIR, ACCELERATOR_KIND).
# Arguments: train.py's.
# Launchers: torchrun srun
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"

if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-} != cpu ]]; then
  printf 'train.sh: roberta runs on GPUs and CPUs, not on the %s family (Trainium).\n  %s\n' \
    "${FAMILY:-neuron}" 'Use a GPU or CPU family, or another workload.' >&2
  exit 1
fi

# fairseq's checkpoints contain its settings as well as tensors, and it loads them in the way of torch before 2.6. They are
# this run's own files.
export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
start_ranks "$here" "$here/train.py" "$@"
