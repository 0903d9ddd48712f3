#!/usr/bin/env bash
#
# Calls sbatch once: asked again with the same token, it names the job that the first time made.
#
# Systems Manager's SendCommand takes no token, so a request that is repeated after a lost answer runs twice.
#
# Called by: trainctl submit, on the head node as the cluster's user. Safe to run again.
# Arguments: TOKEN, then [env NAME=VALUE...] sbatch ... --comment=TOKEN ...
set -euo pipefail

readonly TOKEN="$1"
shift
# On the head node's own disk, by a name that nobody else knows.
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
