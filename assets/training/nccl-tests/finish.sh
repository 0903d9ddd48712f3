#!/usr/bin/env bash
# Judges what the ranks printed, and writes metrics.jsonl. A bad verdict fails the job.
#
# Called by: job.slurm, as the user, on the job's first node, after the ranks. Safe to run again.
# Needs: RUN_DIR, and what judge.py reads.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

python="$(find_python)"
exec "$python" -B "$here/judge.py" "$RUN_DIR"/logs/rank-*.log --metrics "$RUN_DIR/metrics.jsonl"
