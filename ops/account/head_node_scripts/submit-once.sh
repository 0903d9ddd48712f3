#!/usr/bin/env bash
#
# Calls sbatch once: a second call with the same token prints the job of the first one.
#
# Systems Manager's SendCommand takes no token, so a request that is repeated after a lost answer runs twice.
#
# Called by: trainctl submit, on the head node as the cluster's user. Safe to run again.
# Arguments: TOKEN, then [env NAME=VALUE...] sbatch ... --output=SHARED/runs/job-%j.log --comment=TOKEN ...
# On a cluster with several users the output is written to a folder of the user: in SHARED/runs anybody could take the names
#   of the next jobs' outputs beforehand.
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

words=() user="$(id -un)"
for word; do
  own="${word#--output=}"
  own="${own%/runs/job-%j.log}/users/$user"
  # Users of a directory may make their folder themselves.
  if [[ $word == --output=*/runs/job-%j.log ]]; then
    if mkdir -m 700 "$own" 2>/dev/null || [[ -O $own && ! -L $own ]]; then
      mkdir -p "$own/logs"
      word="--output=$own/logs/job-%j.log"
    elif [[ -e $own || -L $own ]]; then
      printf '%s belongs to somebody else, or is a link, so it takes no output of %s.\n  ask an admin to type: sudo mv -T %q %q\n' \
        "$own" "$user" "$own" "$own.old" >&2
      exit 1
    fi
  fi
  words+=("$word")
done
"${words[@]}" 9>&-
