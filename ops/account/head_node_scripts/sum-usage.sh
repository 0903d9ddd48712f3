#!/usr/bin/env bash
#
# Prints the use of nodes by jobs, summed: a line each, "GROUP|PARTITION|JOBS|NODE_SECONDS|GPU_SECONDS". A sum is made
# here, since Systems Manager returns 24,000 characters and a month may have more jobs.
#
# A job counts in each start of it (--duplicates), and in the time that it had nodes between the two dates (--truncate).
# GPUs are those of Slurm's record (gres/gpu), which lacks them unless slurm.conf has AccountingStorageTRES=gres/gpu.
#
# Called by: trainctl usage, on the head node as a user. It changes nothing.
# Arguments: user, account or week; SINCE and UNTIL, dates that sacct takes.
set -euo pipefail

readonly BY="$1" SINCE="$2" UNTIL="$3"
case $BY in
  user) field=User ;;
  account) field=Account ;;
  week) field=Start ;;
  *)
    printf 'unknown group %s\n' "$BY" >&2
    exit 2
    ;;
esac
# The week of ISO 8601, such as 2026-W48.
export SLURM_TIME_FORMAT="%G-W%V"
# The dates are not affected by the format of output.
sacct --allusers --noheader --parsable2 --allocations --duplicates --truncate --starttime "$SINCE" --endtime "$UNTIL" \
  --format "$field,Partition,ElapsedRaw,NNodes,AllocTRES" |
  awk -F'|' '
    $3 > 0 {
      key = $1 "|" $2
      gpus = match($5, /gres\/gpu=[0-9]+/) ? substr($5, RSTART + 9, RLENGTH - 9) : 0
      jobs[key]++
      nodes[key] += $3 * $4
      accelerators[key] += $3 * gpus
    }
    END { for (key in jobs) printf "%s|%d|%d|%d\n", key, jobs[key], nodes[key], accelerators[key] }
  ' | LC_ALL=C sort
