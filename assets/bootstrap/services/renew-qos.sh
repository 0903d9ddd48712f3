#!/usr/bin/env bash
#
# Gives waiting jobs the QOS that their account has now, after max_gpu_hours came to the account or left it.
#
# Slurm leaves a job its old QOS, with which it never starts (InvalidQOS): jobs that waited, and running ones once they are
# queued again. Their users make the change, since Slurm never checks again a QOS that root gave.
#
# Called by: the timer training-cluster-qos (steps/85-start-timers.sh), as root, on the head node, every two minutes.
set -euo pipefail
shopt -s inherit_errexit

waiting="$(squeue --all --noheader --states=PENDING --format='%r %A %u')"
while read -r reason job user; do
  # A running task of an array keeps its QOS, which scontrol reports. No value: the account's own.
  if [[ $reason == InvalidQOS ]]; then runuser -u "$user" -- scontrol update JobId="$job" QOS= </dev/null || true; fi
done <<<"$waiting"
