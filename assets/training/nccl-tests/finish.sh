#!/usr/bin/env bash
# Judges the ranks' output, and writes metrics.jsonl. A bad verdict fails the job.
#
# Called by: job.slurm, as the user, on the job's first node, after the ranks. Safe to run again.
# Needs: RUN_DIR, SLURM_JOB_ID, and what judge.py reads. Reads: START_NUMBER, LAUNCHER (sweep: sweep.py has judged),
#   MEASURE_WITH (product: product.py has judged).
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

python="$(find_python)"
if [[ ${LAUNCHER:-} == sweep ]]; then exec "$python" -B "$here/sweep.py" --verdict; fi
logs="$RUN_DIR/logs/$SLURM_JOB_ID-${START_NUMBER:-0}"
if [[ ${MEASURE_WITH:-} == product ]]; then
  if grep -A 1 '^product\.py: ' "$logs/rank-0.log" >&2; then exit 1; fi
  exit 0
fi
exec "$python" -B "$here/judge.py" "$logs"/rank-*.log --metrics "$RUN_DIR/metrics.jsonl"
