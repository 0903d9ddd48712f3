#!/usr/bin/env bash
# Makes the Python environment that measures, or checks that nccl-tests are installed (MEASURE_WITH=nccl-tests).
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again.
# Needs: TRAINING_VENVS, ACCELERATOR_KIND. Reads: EXPECTED_WORLD_SIZE, PREPARE_ONLY, what device.sh and environment.sh read.
# Writes: $TRAINING_VENVS/nccl-tests, or the environment of the workload ENVIRONMENT_OF.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
source "$here/../environment.sh"
source "$here/device.sh"

device="$(measured_device)"
readonly device
if [[ $device == neuron ]]; then
  printf 'prepare.sh: nccl-tests are for GPUs and CPUs. On Trainium, nccom-test of the Neuron tools measures the same.\n' >&2
  exit 1
fi
program="$(measuring_program)"
readonly program
if [[ $program == product && ${LAUNCHER:-} == sweep ]]; then
  printf 'prepare.sh: a sweep compares all-reduces, and MEASURE_WITH=product makes none: leave one of them out.\n' >&2
  exit 1
fi
if [[ $program != product && ${EXPECTED_WORLD_SIZE:-} == 1 && ${PREPARE_ONLY:-0} != 1 ]]; then
  printf 'prepare.sh: one rank exchanges with nobody, so there is nothing to measure.\n  %s\n' \
    'Give --nodes 2, or a type with more GPUs.' >&2
  exit 1
fi
if [[ $device == cpu || $program != nccl-tests ]]; then
  measured="$(measured_environment "$here")"
  venv="$(environment_of "$measured")"
  make_environment "$measured" "$venv"
fi
