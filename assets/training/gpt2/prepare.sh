#!/usr/bin/env bash
# Makes the Python environment and the data of the gpt2 workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again:
#   it skips what is done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR (folders; job.slurm sets them).
# Reads: VOCAB_SIZE (prepare.py), PIP_* (pip's own settings: index, wheels, proxy),
#   TRAINING_PYTHON (an interpreter, 3.10 or newer; default: the first such on PATH).
# Writes: $TRAINING_VENVS/gpt2 with requirements.sha256, $DATA_DIR/vocab-<VOCAB_SIZE>.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
readonly venv="${TRAINING_VENVS:?job.slurm sets it}/gpt2"
readonly stamp="$venv/requirements.sha256"

log() { printf '%s prepare.sh: %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

# The interpreter to make the environment with.
find_python() {
  local name
  for name in ${TRAINING_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  printf 'prepare.sh: no Python 3.10 or newer on %s.\n  %s\n' "$(hostname)" \
    'Install one, or name it: TRAINING_PYTHON=/usr/bin/python3.11 sbatch ...' >&2
  return 1
}

make_venv() {
  local wanted python
  wanted="$(sha256sum <"$here/requirements.txt")"
  if [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && "$venv/bin/python" -c '' 2>/dev/null; then
    return
  fi
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python="$(find_python)"
    log "making the Python environment $venv with $python"
    if ! "$python" -m venv --clear "$venv" >&2; then
      printf 'prepare.sh: %s -m venv failed.\n  On Ubuntu: sudo apt-get install python3-venv\n' "$python" >&2
      return 1
    fi
  fi
  log "installing requirements.txt into $venv (minutes, once)"
  "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --requirement "$here/requirements.txt" >&2
  # Last, and at one go: an interrupted installation has no stamp.
  printf '%s\n' "$wanted" >"$stamp.new"
  mv "$stamp.new" "$stamp"
}

make_venv
# -B: leave no compiled files in the shared folder.
exec "$venv/bin/python" -B "$here/prepare.py"
