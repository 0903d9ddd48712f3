#!/usr/bin/env bash
# Makes the Python environment and the data of the roberta workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again:
#   it skips what is done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR (folders; job.slurm sets them).
# Reads: what prepare.py reads (CORPUS, VOCAB_SIZE, PREPARE_WORKERS, WIKITEXT_URL, GPT2_BPE_URL, TRAINING_BUCKET), and
#   what environment.sh reads (PIP_*, TRAINING_PYTHON, TRAINING_OPT).
# Writes: $TRAINING_VENVS/roberta, unless the node's image has the environment; $DATA_DIR/<corpus>-bpe-<VOCAB_SIZE>.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

venv="$(environment_of "$here")"
readonly venv
make_environment "$here" "$venv"
export PYTHONUNBUFFERED=1 PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}"
# -B: leave no compiled files in the shared folder.
exec "$venv/bin/python" -B "$here/prepare.py"
