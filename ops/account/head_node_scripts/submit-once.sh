#!/usr/bin/env bash
#
# Calls sbatch once: a second call with the same token prints the job of the first one.
#
# Systems Manager's SendCommand takes no token, so a request that is repeated after a lost answer runs twice.
#
# Called by: trainctl submit, on the head node as the cluster's user. Safe to run again.
# Arguments: TOKEN, then [env NAME=VALUE...] sbatch ... --comment=TOKEN ...
set -euo pipefail

readonly TOKEN="$1"
shift
# On the head node's own disk, with a name that is unique to this token.
readonly LOCK="${TMPDIR:-/tmp}/$TOKEN"
exec 9>"$LOCK"
trap 'rm -f "$LOCK"' EXIT
flock 9

queue="$(squeue --me --noheader --states=all --format='%k %A')"
readonly queue
while read -r comment job; do
  if [[ $comment == "$TOKEN" ]]; then
    printf '%s\n' "$job"
    exit
  fi
done <<<"$queue"
"$@" 9>&-
