#!/usr/bin/env bash
#
# Prints facts about the head node, a line each: "KEY VALUE". It changes nothing.
#
# Called by: trainctl verify, on the head node as the cluster's user. Safe to run again.
# Arguments: SHARED EFS, the folders where Lustre and EFS are mounted. Reads: TRAINING_ROOT (a folder in the place
#   of /).
set -euo pipefail

readonly SHARED="$1" EFS="$2" ROOT="${TRAINING_ROOT:-}"
readonly LOG="$ROOT/var/log/training-cluster/bootstrap.log" INIT_LOG="$ROOT/var/log/cfn-init.log"
# A file system that hangs must not hang the rest.
readonly WAIT_S=10

# type_of FOLDER: prints the type of the file system that is mounted there.
type_of() {
  timeout "$WAIT_S" findmnt --noheadings --output FSTYPE --target "$1" 2>/dev/null | tail --lines=1 ||
    printf 'no answer\n'
}

# lines_with PATTERN FILE: prints the number of lines.
lines_with() { grep --count --extended-regexp -- "$1" "$2" || true; }

# time_of: prints the time at the beginning of a line of cfn-init's log.
time_of() { grep --only-matching --extended-regexp '^[0-9-]{10} [0-9:]{8}' || true; }

# Prints the flag topology, and the leaves of the tree that the head node has written and that slurmctld has read.
topology() {
  local wanted=off
  local -i written
  if [[ -r $ROOT/var/lib/training-cluster/topology ]]; then wanted="$(<"$ROOT/var/lib/training-cluster/topology")"; fi
  written="$(lines_with '^SwitchName=.* Nodes=' "$ROOT/opt/slurm/etc/topology.conf" 2>/dev/null)"
  printf 'topology %s, %s leaves written, %s read\n' "$wanted" "$written" \
    "$({ timeout "$WAIT_S" scontrol show topology 2>/dev/null || true; } | lines_with ' Level=0 ' /dev/stdin)"
}

has() { if [[ -e $ROOT$1 ]]; then printf 'yes\n'; else printf 'no\n'; fi; }

bootstrap() {
  if [[ ! -r $LOG ]]; then
    printf 'bootstrap unreadable\n'
    return
  fi
  printf 'bootstrap %s lines, %s failed steps\n' "$(wc --lines <"$LOG")" "$(lines_with ': failed' "$LOG")"
}

cfn_init() {
  if [[ ! -r $INIT_LOG ]]; then
    printf 'cfn-init unreadable\n'
    return
  fi
  printf 'cfn-init-begin %s\n' "$(time_of <"$INIT_LOG" | head --lines=1)"
  printf 'cfn-init-end %s\n' "$(time_of <"$INIT_LOG" | tail --lines=1)"
  printf 'cfn-init-errors %s\n' "$(lines_with '\[ERROR\]' "$INIT_LOG")"
}

printf 'mount-lustre %s\n' "$(type_of "$SHARED")"
printf 'mount-efs %s\n' "$(type_of "$EFS")"
printf 'script %s\n' "$(timeout "$WAIT_S" stat --format='%U %A' "$SHARED/training/job.slurm" 2>/dev/null || true)"
bootstrap
cfn_init
printf 'pyxis %s\n' "$(has /usr/local/lib/slurm/spank_pyxis.so)"
printf 'pyxis-enabled %s\n' "$(has /opt/slurm/etc/plugstack.conf.d/pyxis.conf)"
printf 'enroot %s\n' "$(has /usr/bin/enroot)"
topology
