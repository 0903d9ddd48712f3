#!/usr/bin/env bash
# Launchers: torchrun srun
set -euo pipefail

if [[ ${ACCELERATOR_KIND:-none} != gpu && ${DEVICE:-} != cpu && -z ${EXPORT_RUN:-} ]]; then
  printf 'train.sh: gpt2-megatron runs on GPUs, and the %s family has none of them.\n  %s\n' "${FAMILY:-node}" \
    'Submit it to a GPU partition; a CPU partition prepares its data: PREPARE_ONLY=1 sbatch ...' >&2
  exit 1
fi

# Megatron overlaps communication and computation, which requires their order of submission to the GPU (its README).
export CUDA_DEVICE_MAX_CONNECTIONS=1
# On CPUs torch.compile would compile Megatron's small functions for minutes, so it is off.
if [[ ${DEVICE:-} == cpu || ${ACCELERATOR_KIND:-none} != gpu ]]; then export TORCHDYNAMO_DISABLE=1; fi
# Hide the modules' warnings about a missing Transformer Engine, and about one of their own defaults.
for warning in 'Transformer Engine and Apex are not installed' 'Apex is not installed' 'full scope is deprecated'; do
  export PYTHONWARNINGS="ignore:$warning:UserWarning${PYTHONWARNINGS:+,$PYTHONWARNINGS}"
done
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
