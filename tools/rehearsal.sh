#!/usr/bin/env bash
#
# Finds and ends what a rehearsal of this folder left running, without the project's Python environment.
#
#   rehearsal.sh pids|stop
#
# Called by: `make stop`, `make clean`, tools/setup.sh. Safe to run again.
# Where .venv is complete, `stop` runs `python -m rehearsal stop`, which stops Slurm in order.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly GRACE_S=8

# Prints the ids of the processes that carry the variable of rehearsal/workspace.py.
pids() {
  local file
  grep -lzxF "TRAINING_CLUSTER_REHEARSAL=$PWD/.rehearsal" /proc/[0-9]*/environ 2>/dev/null |
    while IFS=/ read -r _ _ file _; do printf '%s\n' "$file"; done || true
}

# send SIGNAL: sends it to all of them.
send() {
  local -a found
  mapfile -t found < <(pids)
  if ((${#found[@]})); then kill -s "$1" "${found[@]}" 2>/dev/null || true; fi
}

stop() {
  local count second
  # PYTHONPATH: after the folder was moved, the editable install still names the old path.
  if [[ -f .venv/.made-from ]] && .venv/bin/python -c 'import psutil, typer' 2>/dev/null; then
    PYTHONPATH=constructs exec .venv/bin/python -m rehearsal stop
  fi
  count="$(pids | wc -l)"
  send TERM
  for ((second = 0; second < GRACE_S; second++)); do
    if [[ -z $(pids) ]]; then break; fi
    sleep 1
  done
  send KILL
  rm -f .rehearsal/env.sh
  if ((count)); then printf 'Stopped %s processes.\n' "$count"; else printf 'Nothing was running.\n'; fi
}

case "${1:-}" in
  pids | stop) "$1" ;;
  *)
    printf 'usage: rehearsal.sh pids|stop\n' >&2
    exit 2
    ;;
esac
