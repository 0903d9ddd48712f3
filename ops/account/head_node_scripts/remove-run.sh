#!/usr/bin/env bash
#
# Removes what a job of trainctl verify wrote to the shared folder: its run, its checkpoints and its output.
#
# Called by: trainctl verify, on the head node as the cluster's user, after the job's end. Safe to run again. Runs of
#   other names are refused.
# Arguments: SHARED, the shared folder; WORKLOAD/RUN; the job's id, or nothing to keep its output.
set -euo pipefail

readonly SHARED="$1" RUN="$2" JOB="${3:-}"
readonly NAME='^[A-Za-z0-9][A-Za-z0-9_-]*/verify-[0-9a-f]{8}$' ID='^[0-9]*$'

if [[ ! $RUN =~ $NAME || ! $JOB =~ $ID ]]; then
  printf '%s is not a run of trainctl verify\n' "$RUN" >&2
  exit 2
fi
rm -rf -- "$SHARED/runs/$RUN" "$SHARED/checkpoints/$RUN"
if [[ -n $JOB ]]; then rm -f -- "$SHARED/runs/job-$JOB.log" "$SHARED/users/$(id -un)/logs/job-$JOB.log"; fi
