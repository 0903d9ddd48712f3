#!/usr/bin/env bash
#
# Prints the state of a job and the new part of its output: one request instead of three.
#
# Prints: the exit code of scontrol; one line of its output; the size of FILE in bytes, or - without one; then
# the bytes of FILE from OFFSET up to that size, COUNT at most. The job comes first, so that an ended job's
# output is complete when it is read.
#
# Called by: trainctl logs --follow, on the head node as the cluster's user. Safe to run again.
# Arguments: JOB FILE OFFSET COUNT
set -euo pipefail
export LC_ALL=C # lengths in bytes

readonly JOB="$1" FILE="$2"
offset="$3" count="$4"
# In Slurm's order, the fields that trainctl reads come before this one.
readonly MAX_SAID=3000

code=0
said="$(scontrol show job --oneliner "$JOB" 2>&1)" || code=$?
if ((code == 0)); then
  said="JobId=${said#*JobId=}" # drops a warning before it
  said="${said%%$'\n'JobId=*}" # keeps the first task of an array
fi
said="${said//$'\n'/ }"
printf '%s\n%s\n' "$code" "${said:0:MAX_SAID}"
if [[ ! -e $FILE ]]; then
  printf -- '-\n'
  exit
fi
size="$(stat --format=%s -- "$FILE")"
readonly size
printf '%s\n' "$size"
if ((size < offset)); then
  offset=0 # somebody emptied it
fi
if ((count > size - offset)); then
  count=$((size - offset))
fi
dd if="$FILE" bs=64K iflag=skip_bytes,count_bytes skip="$offset" count="$count" status=none
