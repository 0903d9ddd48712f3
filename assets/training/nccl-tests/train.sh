#!/usr/bin/env bash
# Runs one rank of an all-reduce test: between GPUs by torch's own NCCL, or by nccl-tests; between CPUs by gloo. Or, with
# MEASURE_WITH=product, of a test of matrix products.
#
# Called by: job.slurm through srun, as the user, once a rank. Safe to run again.
# Needs: what launch.sh needs, RUN_DIR, ACCELERATOR_KIND. Reads: MIN_BYTES, MAX_BYTES, what device.sh reads,
#   TRAINING_ROOT (a folder in the place of /).
# Writes: $RUN_DIR/logs/<job>-<start>/rank-<rank>.log, which finish.sh judges.
# Arguments: -b BYTES -e BYTES -n ITERATIONS, as all_reduce_perf has them; with MEASURE_WITH=nccl-tests all of its own.
# Launchers: srun sweep
# MPI: pmix
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"
# shellcheck source=assets/training/nccl-tests/device.sh
source "$here/device.sh"

device="$(measured_device)"
readonly device
rank_environment
keep_output all

program="$(measuring_program)"
readonly program
# judge.py reads the transports and the cards from this log.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH
if [[ $device != gpu || $program != nccl-tests ]]; then
  script=all_reduce.py
  if [[ $program == product ]]; then script=product.py; fi
  measured="$(measured_environment "$here")"
  # The libraries and variables are those with which a workload trains.
  export MEASURED_DEVICE="$device"
  start_ranks "$measured" "$here/$script" "$@"
fi
opt="${TRAINING_OPT:-/opt/training-cluster}"
# Where EFA's installer puts NCCL's plugin (a subfolder on some systems) and Open MPI: lib on Ubuntu, lib64 on Amazon
# Linux.
amazon="${TRAINING_ROOT:-}/opt/amazon"
for folder in "$amazon"/{ofi-nccl,efa,openmpi}/lib{,64} "$amazon"/ofi-nccl/lib/*-linux-gnu; do
  if [[ -d $folder ]]; then LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
done
export LD_LIBRARY_PATH
# -c 1 also compares the values.
supervise "$opt/bin/all_reduce_perf" -b "${MIN_BYTES:-8}" -e "${MAX_BYTES:-16G}" -f 2 -g 1 -c 1 -n 20 "$@"
