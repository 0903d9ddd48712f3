#!/usr/bin/env bash
#
# Prints the usage of file systems: a line each, "MOUNT: SIZE USED" in bytes, or "MOUNT: ERROR".
#
# A file system without an answer is skipped after WAIT_S: a df that hangs can neither be killed nor waited
# for. While such a df runs, no other one is started on the same file system.
#
# Then the quotas of the file of users on the first one, in the same form, "quota of NAME: LIMIT USED" and "quota of
# project NAME: LIMIT USED": all for who may use sudo, else the own one and those of the own projects. The first quota that
# Lustre does not tell is the last one: "quota of NAME: REASON".
#
# Called by: trainctl status, on the head node as a user. Safe to run again. Reads: TRAINING_ETC.
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

# quota u|p ID NAME: prints the quota of a user or a project.
quota() {
  local said used limit
  if ((SECONDS >= WAIT_S)) || [[ -n $untold ]]; then return; fi
  said="$(timeout "$WAIT_S" "${as[@]}" lfs quota -q "-$1" "$2" "$lustre" 2>&1)" || true
  # FILE-SYSTEM KIB QUOTA LIMIT ...; a * marks what is exceeded, and a long name has a line of its own. Numbers in
  # brackets lack what a server did not tell (print_quota in Lustre's lfs.c).
  read -r _ used _ limit _ < <(tr -s ' \n' ' ' <<<"$said") || true
  if [[ ${used:-} =~ ^[0-9]+\*?$ && ${limit:-} =~ ^[0-9]+$ ]]; then
    printf 'quota of %s: %s %s\n' "$3" "$((limit * 1024))" "$((${used%\*} * 1024))"
  else
    untold=yes
    printf 'quota of %s: %s\n' "$3" "$(tail --lines=1 <<<"${said:-no answer within $WAIT_S s}")"
  fi
}

quotas() {
  local -r etc="${TRAINING_ETC:-/etc/training-cluster}" lustre="$1"
  local untold=""
  local -a as=()
  local name gid gib me projects
  if [[ ! -r $etc/users ]] || ! command -v lfs >/dev/null; then return; fi
  me="$(id -un)" projects=" $(id -nG) "
  if sudo --non-interactive true 2>/dev/null; then as=(sudo --non-interactive); fi
  while read -r name _ _ _ _ gib _; do
    if [[ $gib != - ]] && { ((${#as[@]})) || [[ $name == "$me" ]]; }; then quota u "$name" "$name"; fi
  done <"$etc/users"
  if [[ ! -r $etc/accounts ]]; then return; fi
  while read -r name gid gib _; do
    if [[ $gib != - ]] && { ((${#as[@]})) || [[ $projects == *" $name "* ]]; }; then quota p "$gid" "project $name"; fi
  done <"$etc/accounts"
}
quotas "$1"
