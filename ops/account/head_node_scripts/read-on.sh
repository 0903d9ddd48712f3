#!/usr/bin/env bash
#
# Says what a job is at, and what its output has grown by: one question instead of three.
#
# Prints: the exit code of scontrol; a line of what it said; the size of FILE in bytes, or - without one; then
# what FILE has from OFFSET up to that size, COUNT bytes of it at most. The job comes first: what it wrote before
# it ended is then there.
#
# Called by: trainctl logs --follow, on the head node as the cluster's user. Safe to run again.
# Arguments: JOB FILE OFFSET COUNT
set -euo pipefail
export LC_ALL=C # lengths in bytes

readonly JOB="$1" FILE="$2"
offset="$3" count="$4"
# What trainctl reads of a job stands before that, in Slurm's order.
readonly MAX_SAID=3000

code=0
said="$(scontrol show job --oneliner "$JOB" 2>&1)" || code=$?
if ((code == 0)); then
  said="JobId=${said#*JobId=}" # without a warning before it
  said="${said%%$'\n'JobId=*}" # of an array's tasks, the first
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
