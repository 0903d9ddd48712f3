#!/usr/bin/env bash
# Makes a workload's Python environment, and then its data by its prepare.py, if it has one.
#
# Sourced by: prepare.sh of a workload, which job.slurm calls, as the user, on the job's first node, one at a time. Sets
#   `here`, the workload's folder, and `venv`. Safe to run again: it skips what is done, and finishes what was interrupted.
# Arguments: train.py's. With EXPORT_RUN it makes only the environment, since an export reads a run's checkpoint alone.
# Needs: TRAINING_VENVS, DATA_DIR, RUN_DIR, CHECKPOINT_DIR (folders; job.slurm sets them).
# Reads: settings_need_no_package (yes: settings.py checks the settings before the installation); what prepare.py reads, and
#   environment.sh (PIP_*, TRAINING_PYTHON, TRAINING_OPT).
# Writes: $TRAINING_VENVS/WORKLOAD, unless the node's image has the environment; $DATA_DIR; $RUN_DIR/data.json.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

# Wrong settings are reported before anything is installed.
if [[ -n ${settings_need_no_package:-} ]]; then
  python="$(find_python)"
  PYTHONPATH="$here/.." "$python" -B "$here/settings.py"
fi
venv="$(environment_of "$here")"
readonly venv
make_environment "$here" "$venv"
if [[ -n ${EXPORT_RUN:-} ]]; then exit; fi
if [[ -f $here/prepare.py ]]; then
  # The folder above has trainkit. No compiled files in the shared folder.
  export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
  exec "$venv/bin/python" -B "$here/prepare.py" "$@"
fi
