#!/usr/bin/env bash
# Makes the Python environment and the data of the bert-trainium workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again:
#   it skips what is done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR, RUN_DIR (folders; job.slurm sets them), ACCELERATOR_KIND.
# Reads: what prepare.py and settings.py read (CORPUS, WIKIPEDIA, VOCAB_SIZE, BERT_CONTEXT ...), and environment.sh and
#   install.sh (PIP_*, TRAINING_PYTHON, TRAINING_OPT, IMAGE_RECIPE, TRAINING_REHEARSAL).
# Writes: $TRAINING_VENVS/bert-trainium, unless the node's image has the environment; $DATA_DIR; $RUN_DIR/data.json.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

# The folder above has trainkit. No compiled files in the shared folder.
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Wrong settings are told before anything is installed: this needs no package.
python="$(find_python)"
"$python" -B "$here/settings.py"

venv="$(environment_of "$here")"
readonly venv
make_environment "$here" "$venv"
if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-neuron} == neuron && ! -x $venv/bin/neuron_parallel_compile ]]; then
  printf 'prepare.sh: the environment %s was made for a rehearsal on CPUs.\n  %s\n' "$venv" \
    "Remove it and submit again: rm -r $venv" >&2
  exit 1
fi
exec "$venv/bin/python" -B "$here/prepare.py"
