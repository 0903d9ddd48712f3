#!/usr/bin/env bash
# Makes the environment of the tests' own workload: this machine's Python, and torchrun.py in the place of torchrun.
#
# Called by: job.slurm, as the user. Safe to run again.
set -euo pipefail

# A test removes this file.
while [[ -e ${PREPARE_HOLD:-} ]]; do sleep 0.1; done
readonly bin="${TRAINING_VENVS:?}/tiny/bin"
if [[ -e $bin/torchrun ]]; then exit; fi # another job may be starting it
mkdir -p "$bin"
ln -sfn "$(command -v python3)" "$bin/python"
ln -s "$(dirname "${BASH_SOURCE[0]}")/torchrun.py" "$bin/torchrun"
