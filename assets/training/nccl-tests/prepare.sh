#!/usr/bin/env bash
# Looks whether nccl-tests are there (GPUs), or makes the Python environment (CPUs).
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again.
# Needs: TRAINING_VENVS, ACCELERATOR_KIND. Reads: DEVICE, TRAINING_OPT, and what environment.sh reads.
# Writes: $TRAINING_VENVS/nccl-tests on CPUs.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"
# shellcheck source=assets/training/nccl-tests/device.sh
source "$here/device.sh"

device="$(measured_device)"
readonly device
case $device in
  neuron)
    printf 'prepare.sh: nccl-tests are for GPUs and CPUs. On Trainium, nccom-test of the Neuron tools measures the same.\n' >&2
    exit 1
    ;;
  gpu)
    if [[ ! -x ${TRAINING_OPT:-/opt/training-cluster}/bin/all_reduce_perf ]]; then
      printf 'prepare.sh: %s has no all_reduce_perf: the image build compiles it.\n  %s\n' "$(hostname)" \
        'Deploy with -c image=build, or give a folder with bin/all_reduce_perf: TRAINING_OPT=/folder sbatch ...' >&2
      exit 1
    fi
    ;;
  cpu)
    venv="$(environment_of "$here")"
    make_environment "$here" "$venv"
    ;;
esac
