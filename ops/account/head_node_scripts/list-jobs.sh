#!/usr/bin/env bash
#
# Prints the state of each job, and then what is wrong with the network of those that run: a line each,
# "JOB WORKLOAD/RUN: SENTENCE"; or "FOLDER/runs: no answer within WAIT_S s".
#
# A file system that hangs delays it by WAIT_S at most: a grep that waits for one can neither be killed nor waited
# for. While such a grep runs, no other one is started.
#
# Reads: FOLDER/runs/*/*/network.json, which the ranks write after their first step (trainkit/nccl.py), and the file
# owner beside it, with the job that trains the run.
#
# Called by: trainctl status, on the head node as the cluster's user. Safe to run again.
# Arguments: WAIT_S FOLDER
set -euo pipefail

readonly WAIT_S="$1" FOLDER="$2"
# shellcheck disable=SC2016  # for another shell, whose command line names it while it expands the paths
readonly FIND='grep --devices=skip --no-messages --only-matching --with-filename "\"complaint\": \"[^\"]\+\"" "$1"/runs/*/*/network.json'
answers="$(mktemp -d)"
readonly answers
trap 'rm -rf "$answers"' EXIT

find_complaints() {
  local found running line run sentence job
  # The pattern does not match this script's own text, which is in the command line of its shell.
  while pgrep --uid "$UID" --full -- "(^|bash -c |/)grep --devices=skip --no-messages .* $FOLDER(/runs/|\$)" >/dev/null; do
    if ((SECONDS >= WAIT_S)); then return; fi
    sleep 0.2
  done
  found="$(bash -c "$FIND" find "$FOLDER" || true)"
  running=" $(squeue --all --noheader --states=RUNNING,COMPLETING --format=%A | tr '\n' ' ')"
  while IFS= read -r line; do
    run="${line%%/network.json:*}" sentence="${line#*\"complaint\": \"}"
    if [[ ! -f $run/owner ]]; then continue; fi # a pipe in its place would block forever
    job="$(head --bytes=20 "$run/owner" 2>/dev/null || true)"
    if [[ -n $job && $running == *" $job "* ]]; then
      printf '%s %s: %.600s\n' "$job" "${run#"$FOLDER/runs/"}" "${sentence%\"}"
    fi
  done <<<"$found" >"$answers/said"
  mv "$answers/said" "$answers/complaints"
}

squeue --all --noheader --format=%T
# Systems Manager waits for every process that holds the output of this script.
find_complaints >/dev/null 2>&1 </dev/null &
while [[ -n $(jobs -rp) ]] && ((SECONDS < WAIT_S)); do
  sleep 0.1
done
if [[ -e $answers/complaints ]]; then
  cat "$answers/complaints"
else
  printf '%s/runs: no answer within %s s\n' "$FOLDER" "$WAIT_S"
fi
