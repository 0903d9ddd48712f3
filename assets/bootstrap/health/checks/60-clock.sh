#!/usr/bin/env bash
#
# Checks that the clock follows Amazon's time service. With a wrong clock AWS refuses requests and munge refuses jobs
# (both from five minutes on), and nodes' logs and checkpoints contradict each other long before.
#
# Called by: check-node.sh, as root.
# Kinds: all
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

# Our own limit: chrony keeps EC2's clocks within a millisecond.
readonly MOST_S=1

need chronyc "its clock is right"
said="$(chronyc -n -c tracking 2>&1)" || unhealthy "chronyd does not answer: $(last_line "$said")"
# Columns: reference id, source, stratum, time of the last update, offset of the clock in s, ..., leap status.
IFS=, read -r -a columns <<<"$said"
[[ ${#columns[@]} -ge 14 ]] || exit 1
[[ ${columns[-1]} != "Not synchronised" ]] || unhealthy "the clock is not synchronised (chronyc tracking)"
awk -v off="${columns[4]}" -v most="$MOST_S" 'BEGIN { exit off > most || -off > most }' ||
  unhealthy "the clock is off by ${columns[4]} s"
