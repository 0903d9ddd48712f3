#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Tells a person of the job's start, its return to the queue and its end, if NOTIFY asks for it.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its log and die, and its variable training. Defines
#   functions and does nothing else by itself.
# Reads: NOTIFY (webhook or mail; job_settings.sh), NOTIFY_FILE (trainkit/notify.py), JOB_TOPIC (trainkit/mail.py).

# check_notify: ends the job at once if nobody could be told.
check_notify() {
  local python said
  if [[ -z ${NOTIFY:-} ]]; then return; fi
  python="$(find_python)" || exit 1
  said="$(PYTHONPATH="$training" "$python" -B -m trainkit.notify --check 2>&1)" ||
    die "NOTIFY is $NOTIFY, and nobody can be told." "${said#notify.py: }"
}

# tell EVENT TEXT: a message that cannot be sent changes nothing for the job.
tell() {
  local python
  if [[ -z ${NOTIFY:-} ]]; then return; fi
  python="$(find_python)" || return 0
  PYTHONPATH="$training" timeout 40 "$python" -B -m trainkit.notify "$1" "$2" ||
    log "nobody was told of this: see the line above"
}
