#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Ends a training that no longer makes steps, and writes the stacks of its ranks.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its log and die, and its variables training and
#   RUN_DIR. Only defines functions.
# Reads: HANG_TIMEOUT_S, the seconds without a step that are a hang (job_settings.sh; at least ten steps of usual length,
#   and an hour for the first step; 0: no watch). LAUNCHER: a sweep has no steps, and limits its measurements itself.
#   The watch is trainkit/run/heartbeat.py. Writes: $RUN_DIR/stacks/, $RUN_DIR/failed.

heartbeat=""

# watch_for_hangs PID TIME: starts the watch of the ranks, which runs in the background. PID is the process group that waits for
# them, which began at TIME (Unix): they may make a step before the watch looks.
watch_for_hangs() {
  local python
  rm -f "$RUN_DIR/busy"
  if ((HANG_TIMEOUT_S == 0)) || [[ $LAUNCHER == sweep ]]; then return; fi
  python="$(find_python)" || exit 1
  "$python" -I -B "$training/run_module.py" trainkit.run.heartbeat "$RUN_DIR" "$1" "$2" &
  heartbeat=$!
}

# Ends the watch with the ranks.
end_watch_for_hangs() {
  if [[ -n $heartbeat ]]; then kill "$heartbeat" 2>/dev/null || true; fi
}
