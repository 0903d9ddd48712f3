#!/usr/bin/env bash
#
# Prints the state of each job, and then what is wrong with the network of those that run: a line each,
# "JOB WORKLOAD/RUN: SENTENCE".
#
# Reads: FOLDER/runs/*/*/network.json, which the ranks write after their first step (trainkit/nccl.py), and the file
# owner beside it, with the job that trains the run.
#
# Called by: trainctl status, on the head node as the cluster's user. Safe to run again.
# Arguments: WAIT_S FOLDER
set -euo pipefail

readonly WAIT_S="$1" FOLDER="$2"
# shellcheck disable=SC2016  # for another shell, since the file system may hang
readonly FIND='grep --devices=skip --no-messages --only-matching --with-filename "\"complaint\": \"[^\"]\+\"" "$1"/runs/*/*/network.json'

squeue --all --noheader --format=%T
found="$(timeout --kill-after=1 "$WAIT_S" bash -c "$FIND" find "$FOLDER" || true)"
readonly found
if [[ -z $found ]]; then exit; fi
running=" $(squeue --all --noheader --states=RUNNING,COMPLETING --format=%A | tr '\n' ' ')"
readonly running
while IFS= read -r line; do
  run="${line%%/network.json:*}" sentence="${line#*\"complaint\": \"}"
  if [[ ! -f $run/owner ]]; then continue; fi # a pipe in its place would block for ever
  job="$(head --bytes=20 "$run/owner" 2>/dev/null || true)"
  if [[ -n $job && $running == *" $job "* ]]; then
    printf '%s %s: %.600s\n' "$job" "${run#"$FOLDER/runs/"}" "${sentence%\"}"
  fi
done <<<"$found"
