#!/usr/bin/env bash
#
# Writes, prints or removes one small file of Lustre, by which trainctl sees that a link to the bucket works.
#
#   probe-link.sh write FILE TEXT    writes TEXT
#   probe-link.sh print FILE         prints the text; nothing if there is no such file
#   probe-link.sh remove FILE        removes the file, if it exists
#
# A file that came from the bucket belongs to root, in a folder where only its owner may remove it.
#
# Called by: trainctl verify, on the head node as the cluster's user. Safe to run again. Other names of files are
#   refused.
set -euo pipefail

readonly ACTION="$1" FILE="$2"
readonly NAME='^trainctl-verify-[0-9a-f]{32}$'

if [[ ! $(basename "$FILE") =~ $NAME ]]; then
  printf '%s is not a file of trainctl verify\n' "$FILE" >&2
  exit 2
fi
case $ACTION in
  write) printf '%s' "$3" >"$FILE" ;;
  print) if [[ -e $FILE ]]; then cat -- "$FILE"; fi ;;
  remove) rm -f -- "$FILE" 2>/dev/null || sudo --non-interactive rm -f -- "$FILE" ;;
  *)
    printf 'unknown action %s\n' "$ACTION" >&2
    exit 2
    ;;
esac
