#!/usr/bin/env bash
# Runs one rank of an all-reduce test: nccl-tests between GPUs, gloo between CPUs.
#
# Called by: job.slurm through srun, as the user, once a rank. Safe to run again.
# Needs: what launch.sh needs, RUN_DIR, ACCELERATOR_KIND. Reads: DEVICE, MIN_BYTES, MAX_BYTES, TRAINING_OPT,
#   TRAINING_ROOT (a folder in the place of /).
# Writes: $RUN_DIR/logs/<job>-<restart>/rank-<rank>.log, which finish.sh judges.
# Arguments: of all_reduce_perf between GPUs (-n 50); between CPUs --min-bytes, --max-bytes.
# Launchers: srun
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

if [[ $device != gpu ]]; then
  start_ranks "$here" "$here/all_reduce.py" "$@"
fi
opt="${TRAINING_OPT:-/opt/training-cluster}"
# Where EFA's installer puts NCCL's plugin (a subfolder on some systems) and Open MPI: lib on Ubuntu, lib64 on Amazon
# Linux.
amazon="${TRAINING_ROOT:-}/opt/amazon"
for folder in "$amazon"/{ofi-nccl,efa,openmpi}/lib{,64} "$amazon"/ofi-nccl/lib/*-linux-gnu; do
  if [[ -d $folder ]]; then LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi
done
export LD_LIBRARY_PATH
# The judge reads the transports and the cards from it.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH
# -c 1: the values are compared, too.
supervise "$opt/bin/all_reduce_perf" -b "${MIN_BYTES:-8}" -e "${MAX_BYTES:-16G}" -f 2 -g 1 -c 1 -n 20 "$@"
