#!/usr/bin/env bash
# Starts the ranks of one node of the gpt2-megatron workload, or one of its ranks.
#
# Called by: job.slurm, as the user: once on every node (LAUNCHER=torchrun) or once a rank (srun). Safe to run again:
#   train.py resumes from the run's last checkpoint.
# Environment: what launch.sh and train.py read; ACCELERATOR_KIND, FAMILY, DEVICE.
# Arguments: train.py's.
# Launchers: torchrun srun
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here

if [[ ${ACCELERATOR_KIND:-none} != gpu && ${DEVICE:-} != cpu && -z ${EXPORT_RUN:-} ]]; then
  printf 'train.sh: gpt2-megatron runs on GPUs, and the %s family has none of them.\n  %s\n' "${FAMILY:-node}" \
    'Submit it to a GPU partition; a CPU partition prepares its data: PREPARE_ONLY=1 sbatch ...' >&2
  exit 1
fi

# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"
# Megatron overlaps communication and computation, which requires their order of submission to the GPU (its README).
export CUDA_DEVICE_MAX_CONNECTIONS=1
# On CPUs torch.compile would compile Megatron's small functions for minutes, so it is off.
if [[ ${DEVICE:-} == cpu || ${ACCELERATOR_KIND:-none} != gpu ]]; then export TORCHDYNAMO_DISABLE=1; fi
# Hide the modules' warnings about a missing Transformer Engine, and about one of their own defaults.
for warning in 'Transformer Engine and Apex are not installed' 'Apex is not installed' 'full scope is deprecated'; do
  export PYTHONWARNINGS="ignore:$warning:UserWarning${PYTHONWARNINGS:+,$PYTHONWARNINGS}"
done
start_ranks "$here" "$here/train.py" "$@"
