#!/usr/bin/env bash
# Makes the Python environment and the data of the bert-trainium workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again:
#   it skips what is done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR, RUN_DIR (folders; job.slurm sets them).
# Reads: what prepare.py and settings.py read (CORPUS, WIKIPEDIA_EDITION, VOCAB_SIZE ...), and environment.sh and
#   install.sh (PIP_*, TRAINING_PYTHON, TRAINING_OPT, IMAGE_RECIPE, TRAINING_REHEARSAL).
# Writes: $TRAINING_VENVS/bert-trainium (-cpu without Trainium), unless the node's image has the environment; $DATA_DIR;
#   $RUN_DIR/data.json.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

# The folder above has trainkit. No compiled files in the shared folder.
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Wrong settings are reported before anything is installed: this needs no package.
python="$(find_python)"
"$python" -B "$here/settings.py"

venv="$(environment_of "$here")"
readonly venv
make_environment "$here" "$venv"
exec "$venv/bin/python" -B "$here/prepare.py"
