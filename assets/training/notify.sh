#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Notifies the user of the job's start, its return to the queue and its end, if NOTIFY is set.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its log and die, and its variable training. Defines
#   functions and does nothing else by itself.
# Reads: NOTIFY (webhook or mail; job_settings.sh), NOTIFY_FILE and JOB_TOPIC (trainkit/notify.py).

# check_notify: ends the job at once if notifications cannot be sent.
check_notify() {
  local python said
  if [[ -z ${NOTIFY:-} ]]; then return; fi
  python="$(find_python)" || exit 1
  said="$("$python" -I -B "$training/run_module.py" trainkit.notify --check 2>&1)" ||
    die "NOTIFY is $NOTIFY, but notifications cannot be sent." "${said#notify.py: }"
}

# tell EVENT TEXT: sends a message; the job continues if that fails.
tell() {
  local python
  if [[ -z ${NOTIFY:-} ]]; then return; fi
  python="$(find_python)" || return 0
  timeout 40 "$python" -I -B "$training/run_module.py" trainkit.notify "$1" "$2" ||
    log "no notification of this was sent: see the line above"
}
