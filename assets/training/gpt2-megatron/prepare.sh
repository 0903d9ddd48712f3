#!/usr/bin/env bash
# Makes the Python environment, the data and the weights of the gpt2-megatron workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again:
#   it skips what is done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR, RUN_DIR (folders; job.slurm sets them).
# Reads: what prepare.py reads (CORPUS, WIKIPEDIA_EDITION, VOCAB_SIZE, INIT_FROM ...), and environment.sh (PIP_*,
#   TRAINING_PYTHON, TRAINING_OPT).
# Writes: $TRAINING_VENVS/gpt2-megatron (-local without Transformer Engine), unless the node's image has the
#   environment; $DATA_DIR; $RUN_DIR/data.json.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

venv="$(environment_of "$here")"
readonly venv
make_environment "$here" "$venv"
# An export reads only a run's checkpoint.
if [[ -n ${EXPORT_RUN:-} ]]; then exit; fi
# The folder above has trainkit. No compiled files in the shared folder.
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec "$venv/bin/python" -B "$here/prepare.py"
