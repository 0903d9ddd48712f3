#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154  # job.slurm's variables
# Decides whether a job whose training ended early starts again, where, and from which step.
#
# Sourced by: job.slurm, as the user, on the job's first node; sources nodes.sh and space.sh; uses job_settings.sh, its log, die, tell and report, and
#   its variables training, workload, run, RUN_DIR, CHECKPOINT_DIR, MAX_RESTARTS. Defines functions, and exports THIS_JOB.
# Reads: $CHECKPOINT_DIR/latest_step, $RUN_DIR/{outcome,failed,local_step}. Writes: $RUN_DIR/{starts,ends}, and by job_settings.sh
#   $RUN_DIR/settings-<job id>-<start>.env.
#
# Starts without a new checkpoint are counted, since a fault in the data or the code at one step would otherwise repeat
# without end; each new checkpoint sets both counts to 0. MAX_RESTARTS limits restarts after starts whose ranks ended by
# themselves. After such a start the ranks start again on the same nodes, which Slurm would give to another job if this one
# were queued. If that start has no new checkpoint either, the job is queued again, and prologs check the nodes of the next. A
# start from a later local checkpoint is progress in this respect alone, since those do not survive a requeue.
# Starts that Slurm or EC2 ended (a lost node, scontrol requeue, EC2's notice) say nothing about the data and the code, so
# they have a limit of their own. Starts that ended before the training do not count (a node that its health check refused,
# one that was lost during preparation).

# Slurm's name of this job. The last task of an array has the array's own id, which squeue, scancel and scontrol take for all
# tasks. Another job may have inherited the array's variables from the job that submitted it.
export THIS_JOB="${SLURM_JOB_ID:-}"
if [[ -n $THIS_JOB && ${SLURM_ARRAY_JOB_ID:-} == "$THIS_JOB" ]]; then THIS_JOB+="_$SLURM_ARRAY_TASK_ID"; fi

# A job has the job.slurm of its submission, and the other files of the newest deploy.
if [[ ${job_script:-} != 4 ]]; then
  printf 'job.slurm of this job is of another version than %s: it continues as %s/job.slurm\n' "${BASH_SOURCE[0]}" "$training" >&2
  exec bash "$training/job.slurm" "$@"
fi

# shellcheck source=assets/training/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"
# shellcheck source=assets/training/space.sh
source "$(dirname "${BASH_SOURCE[0]}")/space.sh"

declare -i failures=0 interruptions=0 start_step=0 # check_restart reads them
declare -i job_step=0                              # step at which Slurm's own start of this job began
declare -i counted=-1                              # Slurm's restart count of the last start that counts
export START_NUMBER=0                              # number of this start of the training in the job's life
declare -i starts_here=0                           # in this allocation
declare -i local_step=0                            # highest step of the nodes' own disks at which a start here began
repeats=""                                         # set if the ranks of the last start failed on the same nodes
lost=""                                            # nodes of the last start that are not well, and why
ended_at=""
readonly MAX_INTERRUPTIONS=10 MAX_FAILURES_A_DAY=24 ENDED_BY_SIGTERM=143
told="" # set by job.slurm's trap if Slurm asked this script to end

# Prints the step of the newest complete checkpoint; 0 without one.
latest_step() {
  local step=0
  if [[ -f $CHECKPOINT_DIR/latest_step ]]; then step="$(<"$CHECKPOINT_DIR/latest_step")"; fi
  [[ $step =~ ^[0-9]+$ ]] || die "$CHECKPOINT_DIR/latest_step holds '$step', which is not a step." \
    "Write the step of the newest whole checkpoint into it, or remove it."
  printf '%s\n' "$((10#$step))"
}

# Prints the command that continues this run.
how_to_go_on() {
  # Otherwise job.slurm would begin another run in /fsx.
  if [[ ${TRAINING_SHARED:-/fsx} != /fsx ]]; then printf 'TRAINING_SHARED=%q ' "$TRAINING_SHARED"; fi
  local fewest="" name
  for name in SPARES MIN_NODES; do
    if [[ ${!name:-0} != 0 ]]; then printf '%s=%s ' "$name" "${!name}"; fi
  done
  if [[ -n ${MIN_NODES:-} ]] && ((MIN_NODES < SLURM_JOB_NUM_NODES)); then fewest="$MIN_NODES-"; fi
  printf 'RUN_NAME=%s sbatch --nodes %s%s %s/job.slurm %s' "$run" "$fewest" "$SLURM_JOB_NUM_NODES" "$training" "$workload"
}

# Corrects latest_step where the newest checkpoint has lost files, and reports it in a line.
check_checkpoints() {
  local python
  # All checkpoints were moved away, as messages advise for damaged ones.
  if [[ $(compgen -G "$CHECKPOINT_DIR/*") == "$CHECKPOINT_DIR/latest_step" ]]; then
    log "$CHECKPOINT_DIR has no checkpoint any more, so the training begins at step 0, not at step $(latest_step)"
    rm "$CHECKPOINT_DIR/latest_step"
  fi
  if ! compgen -G "$CHECKPOINT_DIR/step-*" >/dev/null; then return; fi
  python="$(find_python)" || exit 1
  "$python" -I -B "$training/run_module.py" trainkit.run.checkpoints "$CHECKPOINT_DIR" ||
    die "the checkpoints in $CHECKPOINT_DIR cannot be used: see the line above." "When that is fixed, continue it by hand: $(how_to_go_on)"
}

# Counts the starts of this job since its newest checkpoint, and ends a job with too many.
check_restart() {
  local job count step restart by not
  local -i newest=-1
  local -A ends=()
  await_space
  check_checkpoints
  start_step="$(latest_step)"
  if ((starts_here == 0)); then job_step="$start_step"; fi
  export START_STEP="$start_step" # the ranks take this checkpoint without a check of their own
  while read -r job count _ _ by; do
    if [[ $job == "$SLURM_JOB_ID" && -n $by ]]; then ends[$count]="$by"; fi
  done < <(lines_of ends)
  failures=0 interruptions=0
  while read -r count step _ _ job restart _; do
    : "${restart:=$count}" # a start of an older version
    if [[ $job != "$SLURM_JOB_ID" || ! $count-$step-$restart =~ ^[0-9]+-[0-9]+-[0-9]+$ ]]; then continue; fi
    counted=$((10#$restart)) START_NUMBER=$((10#$count + 1))
    if ((10#$step > newest)); then newest=$((10#$step)) failures=0 interruptions=0; fi
    # Without a line in `ends`, Slurm killed this script.
    if [[ ${ends[$count]:-slurm} == slurm ]]; then interruptions+=1; else failures+=1; fi
  done < <(lines_of starts)
  if ((start_step > newest)); then failures=0 interruptions=0; fi
  if ((newest < 0 || counted == ${SLURM_RESTART_COUNT:-0})); then return; fi # restart_or_end has asked
  not="$(why_not_again)"
  if [[ -n $not ]]; then end_for_good 1 "the job was queued again (a lost node, or scontrol requeue)" "$not"; fi
}

# lines_of NAME: prints a file of the run, without the NULs of damaged lines, over which bash reads.
lines_of() {
  if [[ -f $RUN_DIR/$1 ]]; then tr '\0' '?' <"$RUN_DIR/$1"; fi
}

# Prints the number of starts in the last day whose ranks ended by themselves.
failed_today() {
  lines_of ends | awk -v job="$SLURM_JOB_ID" -v since="$(date -u -d '1 day ago' +%FT%TZ)" \
    '$1 == job && $3 >= since && $5 == "ranks" { count++ } END { print count + 0 }'
}

# Prints why the job may not start again, by the counts since its newest checkpoint and in a day; nothing if it may.
why_not_again() {
  if ((MAX_RESTARTS == 0)); then
    printf 'MAX_RESTARTS is 0\n'
  elif ((failures > MAX_RESTARTS)); then
    printf 'MAX_RESTARTS is %s, and %s starts failed without a checkpoint after step %s\n' "$MAX_RESTARTS" "$failures" \
      "$start_step"
  elif ((interruptions > MAX_INTERRUPTIONS)); then
    printf 'Slurm or EC2 ended %s starts before a checkpoint after step %s\n' "$interruptions" "$start_step"
  elif (($(failed_today) > MAX_FAILURES_A_DAY)); then
    printf 'more than %s starts failed in a day, though each saved a checkpoint\n' "$MAX_FAILURES_A_DAY"
  fi
}

# Chooses the nodes of the first start before it counts, since a node that is lost, or whose prolog has just failed, takes no
# step.
reach_nodes() {
  local why
  choose_nodes
  why="${#well[@]} nodes of the job took a step, and $least are needed"
  if ((size)); then
    use_nodes "${well[@]:0:size}"
    ((size == wanted)) || log "trains on $size nodes, of $wanted"
    return
  fi
  lost="$(lost_nodes)"
  why+="${lost:+, without $lost}"
  if ((${SLURM_RESTART_COUNT:-0} - counted > MAX_INTERRUPTIONS)); then
    end_for_good 1 "$why" "no training has begun in $MAX_INTERRUPTIONS restarts"
  fi
  queue_again 1 "$why"
}

# Exports the seconds that Slurm leaves the ranks between SIGTERM and SIGKILL.
read_kill_wait() {
  KILL_WAIT_S="$(scontrol show config | sed -n 's/^KillWait *= *\([0-9]*\) sec.*/\1/p')" ||
    log "Slurm does not say how long it waits before it kills (KillWait)"
  export KILL_WAIT_S
}

# add_start: writes the line of a start, also after one that a full disk cut. Without its folder, all nodes would make those of
# launch.sh at once.
add_start() {
  { [[ ! -s $RUN_DIR/starts || -z $(tail -c 1 "$RUN_DIR/starts") ]] || printf '\n' >>"$RUN_DIR/starts"; } &&
    mkdir -p "$RUN_DIR"/{logs,flight}/"$SLURM_JOB_ID-$START_NUMBER" &&
    printf '%s %s %s %s %s %s %s %s\n' "$START_NUMBER" "$start_step" "$(date -u +%FT%TZ)" "$host_list" "$SLURM_JOB_ID" \
      "${SLURM_RESTART_COUNT:-0}" "$SLURM_JOB_NUM_NODES" "$held_s" >>"$RUN_DIR/starts"
}

note_start() {
  local job="" number="" restart="" host_list
  # Since 23.02 Slurm gives the time of the allocation; before that, this script's own start stands for it.
  local -ri held_s=$((${SLURM_JOB_START_TIME:-0} ? EPOCHSECONDS - SLURM_JOB_START_TIME : SECONDS))
  if [[ -n $told ]]; then end_as_asked "ended before the ranks started again"; fi
  # Ranks of an older start save nothing from now on (checkpoints.py); this script may be a left-over one itself.
  read -r number _ _ _ job restart _ < <(lines_of starts | tail -n 1) || true
  if [[ $job == "$SLURM_JOB_ID" && $number-$restart =~ ^[0-9]+-[0-9]+$ ]] &&
    ((10#$number >= START_NUMBER || 10#$restart > ${SLURM_RESTART_COUNT:-0})); then
    die "a later start of this job has the run." "Nothing is to be done."
  fi
  rm -f "$RUN_DIR"/{outcome,failed,network.json,local_step}
  host_list="$(host_list "$NODES")"
  # The file system may have become full since check_restart.
  with_space add_start
  starts_here+=1
  log "training from step $start_step"
  ((starts_here > 1)) || tell started "from step $start_step on $NNODES nodes ($host_list), restart $START_NUMBER"
  read_kill_wait
  note_settings "$RUN_DIR/settings-$SLURM_JOB_ID-$START_NUMBER.env" ||
    log "the settings of this start could not be written down"
}

# note_end CODE: records when the ranks of this start ended, from which the cost of the nodes is computed, and who ended them.
note_end() {
  local by
  # Alone on its line: bash fails to read the second of two substitutions if a trap runs after the first.
  by="$(ended_by "$1")"
  printf '%s %s %s %s %s\n' "$SLURM_JOB_ID" "$START_NUMBER" "${ended_at:-$(date -u +%FT%TZ)}" "$1" "$by" \
    >>"$RUN_DIR/ends" || log "the end of this start could not be written down"
}

# had_finished CODE: succeeds, with a line, if the training was complete before its ranks ended with that exit code.
had_finished() {
  grep -qsx finished "$RUN_DIR/outcome" || return
  log "the training had finished before ${lost:+these nodes were lost: }${lost:-a rank failed (exit code $1)}"
}

# ended_by CODE: prints `slurm` if Slurm or EC2 asked the ranks to stop, else `ranks`.
ended_by() {
  # A time limit's signal is for the ranks alone; they save, or it ends them at once.
  if [[ -n $told || -n $lost ]] || { [[ ! -f $RUN_DIR/failed ]] &&
    { (($1 == ENDED_BY_SIGTERM)) || grep -qs '^stopped' "$RUN_DIR/outcome"; }; }; then
    printf 'slurm\n'
  else
    printf 'ranks\n'
  fi
}

# queue_again CODE WHY: requeues the job, at which Slurm ends this script; CODE is its exit code if it ends first.
queue_again() {
  log "$2; queued again"
  log "other jobs may take its nodes meanwhile$([[ -z $lost || ${SPARES:-0} != 0 ]] || printf '; with SPARES=1 it would keep them')"
  tell "queued again" "$2"
  # Meanwhile it may have been cancelled, and Slurm takes back a job that still ends.
  if [[ -n $told ]] && ! is_at_time_limit && ! is_preempted; then
    die "not queued again, since Slurm has asked the job to end." "Continue by hand, unless Slurm has queued it again: $(how_to_go_on)"
  fi
  trap '' TERM # Slurm's
  scontrol requeue "$THIS_JOB" || die "Slurm did not take the job back." "Continue by hand: $(how_to_go_on)"
  exit "$1"
}

# end_of_training CODE: reports the outcome, and ends this script; returns if the ranks are to start again on these nodes. A
# rank that died is reported first, since the others may have saved and stopped after that.
end_of_training() {
  local outcome="" failed="exit code $1"
  if [[ -f $RUN_DIR/outcome ]]; then outcome="$(<"$RUN_DIR/outcome")"; fi
  if [[ -s $RUN_DIR/failed ]]; then failed="$(<"$RUN_DIR/failed")"; fi # empty on a full disk
  # The sentinel's sentences, which the ranks may have printed days ago.
  cat "$RUN_DIR/suspect-$SLURM_JOB_ID".* 2>/dev/null | sort -u | while read -r suspect; do log "sentinel: $suspect"; done || true
  if [[ $outcome == finished ]]; then
    report
  elif [[ $outcome == diverged* ]]; then
    tell "given up" "the training diverged at step ${outcome#diverged }"
    log "the training diverged at step ${outcome#diverged }: not started again, since it would most likely diverge there again"
    log "with a lower LEARNING_RATE, or more WARMUP_STEPS: LEARNING_RATE=VALUE $(how_to_go_on)"
    exit 1
  elif [[ $outcome == refused* ]]; then
    tell "given up" "${outcome#refused }"
    log "not started again: ${outcome#refused }"
    log "when that is fixed, continue from step $(latest_step): $(how_to_go_on)"
    exit 1
  elif [[ -n $lost ]]; then
    if [[ $outcome == stopped* ]]; then lost+=", and the training saved at step ${outcome#stopped }"; fi
    restart_or_end "$(($1 ? $1 : 1))" "lost or unhealthy: $lost" slurm
    return
  elif [[ $outcome == stopped* && ! -f $RUN_DIR/failed ]]; then
    end_as_asked "stopped at step ${outcome#stopped } and saved"
  elif [[ -n $told || ($1 == "$ENDED_BY_SIGTERM" && ! -f $RUN_DIR/failed) ]]; then
    # Intel MPI's mpirun ends its ranks at once.
    end_as_asked "ended without saving since the checkpoint of step $(latest_step)"
  elif (($1)); then
    restart_or_end "$1" "the training failed ($failed)" "$(ended_by "$1")"
    return
  fi
  log "done"
  tell finished "exit code $1"
  exit "$1"
}

# end_as_asked HOW: ends a job whose ranks Slurm asked to stop; at its time limit it starts again, if the user wants that and
# the next start would advance. A cancelled job is not requeued.
end_as_asked() {
  if is_preempted; then restart_or_end 1 "the job is preempted: $1" slurm; fi
  if is_at_time_limit; then
    (($(latest_step) > job_step)) ||
      end_for_good 1 "the job is at its time limit: $1" "no checkpoint was written in that time, after step $job_step"
    restart_or_end 1 "the job is at its time limit: $1" slurm
  fi
  log "$1, as Slurm asked (time limit, scancel or requeue)"
  tell stopped "$1, as Slurm asked (time limit, scancel or requeue)"
  log "continue it, unless Slurm has queued it again: $(how_to_go_on)"
  exit 1
}

# is_preempted: succeeds while a job that is preempted has GraceTime. Slurm queues it again only if it has not ended by then.
# A job that another one suspends (PreemptMode=SUSPEND,GANG) keeps its PreemptTime after it is resumed.
is_preempted() {
  local -r preempted='JobState=RUNNING .* PreemptTime=([0-9]+) SuspendTime=([0-9]+|None) '
  [[ $(SLURM_TIME_FORMAT=%s scontrol --oneliner show job "$THIS_JOB") =~ $preempted ]] &&
    ((BASH_REMATCH[1] > ${BASH_REMATCH[2]/None/0}))
}

# is_at_time_limit: succeeds if REQUEUE_AT_TIME_LIMIT is 1, and the ranks were asked to stop because of the time limit:
# it has passed, or the job still runs (it was not cancelled, preempted or requeued) and less than a day is left. The longest
# notice is 65535 s (sbatch --signal); Slurm does not tell a job its own, nor who sent a signal.
is_at_time_limit() {
  local state left
  if [[ ${REQUEUE_AT_TIME_LIMIT:-0} != 1 ]]; then return 1; fi
  read -r state left < <(squeue --noheader --jobs "$THIS_JOB" --format '%T %L') || return 1
  [[ $left == INVALID || $left == 0:00 || ($state == RUNNING && $left == [0-9]* && $left != *-*) ]]
}

# restart_or_end CODE WHY BY: starts again, unless too many starts had no new checkpoint; BY (slurm or ranks) ended this one.
# Returns if the ranks are to start again on these nodes.
restart_or_end() {
  local at began not tries="" where="on the same nodes"
  at="$(latest_step)"
  if ((at > start_step)); then
    failures=0 interruptions=0
  elif [[ $3 == slurm ]]; then
    interruptions+=1 tries=", interruption $interruptions of $MAX_INTERRUPTIONS without a new checkpoint"
  else
    failures+=1 tries=", restart $failures of $MAX_RESTARTS without a new checkpoint"
  fi
  began="$(lines_of local_step)" # by trainkit.local_checkpoints
  if [[ $began =~ ^[0-9]+$ ]] && ((10#$began > local_step)); then local_step=$((10#$began)) repeats=""; fi
  not="$(why_not_again)"
  # Not on nodes on which the ranks failed twice without progress.
  if ((size)) && [[ -z $not && (-n $lost || ($3 == ranks && (-z $repeats || -z $tries))) ]]; then
    if [[ -n $lost ]]; then where="on $(host_list "${well[@]:0:size}")"; else repeats=yes; fi
    log "$2; continues from step $at$tries, $where"
    tell "started again" "$2; continues from step $at$tries, $where"
    return
  elif [[ -z $not ]]; then
    queue_again "$1" "$2; continues from step $at$tries"
  fi
  end_for_good "$1" "$2" "$not"
}

# end_for_good CODE WHY NOT: ends the job with CODE, and reports why it does not start again.
end_for_good() {
  log "$2; not started again, since $3"
  tell "given up" "$2; not started again, since $3"
  log "continue it by hand: $(how_to_go_on)"
  exit "$1"
}
