#!/usr/bin/env bash
# Starts the ranks of the tests' own workload: seconds instead of minutes, and no torch.
#
# Called by: job.slurm, as the user. Safe to run again.
# Launchers: torchrun srun mpirun
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/launch.sh
source "$here/../launch.sh"
start_ranks "$here" "$here/trainer.py" "$@"
