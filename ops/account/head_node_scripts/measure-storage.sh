#!/usr/bin/env bash
#
# Prints the usage of file systems: a line each, "MOUNT: SIZE USED" in bytes, or "MOUNT: ERROR".
#
# A file system without an answer is skipped after WAIT_S: a df that hangs can neither be killed nor waited
# for. While such a df runs, no other one is started on the same file system.
#
# Called by: trainctl status, on the head node as the cluster's user. Safe to run again.
# Arguments: WAIT_S MOUNT...
set -euo pipefail

readonly WAIT_S="$1"
shift
answers="$(mktemp -d)"
readonly answers
trap 'rm -rf "$answers"' EXIT

ask() {
  local -r mount="$1" answer="$2"
  local -ra command=(df "--output=size,used" --block-size=1 "$mount")
  while pgrep --uid "$UID" --full -- "(^|/)${command[*]}\$" >/dev/null; do
    if ((SECONDS >= WAIT_S)); then
      return
    fi
    sleep 0.2
  done
  "${command[@]}" >"$answer.said" 2>&1 || true
  mv "$answer.said" "$answer"
}

for mount in "$@"; do
  # Systems Manager waits for every process that holds the output of this script.
  ask "$mount" "$answers/${mount//\//_}" >/dev/null 2>&1 </dev/null &
done
while [[ -n $(jobs -rp) ]] && ((SECONDS < WAIT_S)); do
  sleep 0.1
done
for mount in "$@"; do
  answer="$answers/${mount//\//_}"
  if [[ -e $answer ]]; then
    printf '%s: %s\n' "$mount" "$(tail --lines=1 "$answer")"
  else
    printf '%s: no answer within %s s\n' "$mount" "$WAIT_S"
  fi
done
