#!/usr/bin/env bash
# Measures each node of the job alone, then pairs of nodes at once, and names the nodes that are slow or broken.
#
# Called by: job.slurm with LAUNCHER=sweep, as the user, once, on the job's first node, after prepare.sh. Safe to run
#   again. trainctl check-nodes submits such a job.
# Needs: what train.sh needs, SLURM_JOB_NODELIST. Reads: SWEEP_BYTES, SWEEP_SHARE, SWEEP_LIMIT_S (sweep.py).
# Writes: $RUN_DIR/sweep.json, $RUN_DIR/sweep/<number>-<nodes>/, the output of each measurement.
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
source "$here/../environment.sh"

python="$(find_python)"
exec "$python" -B "$here/sweep.py"
