#!/usr/bin/env bash
#
# Waits until the GPUs have joined their NVLink fabric, which the fabric manager sets up some time after boot.
#
# Without the wait, the prolog of the first job, which has no time for it, would drain a node that is healthy a minute
# later. If the fabric is not ready in time, the step fails, but the node still joins the cluster: its first health check
# then drains it with the reason. The step uses the node's own checks, so it ends at once without NVSwitches (g5).
#
# Called by: run-steps.sh, as root. Changes nothing. Environment: BUNDLE, PARTITION, TRAINING_ETC, BOOTSTRAP_MOMENT (on a
#   running node it does not wait). Safe to run again.
# Recipes: gpu
# Nodes: ComputeFleet
# Required: no
# Budget: 180 s
set -euo pipefail
shopt -s inherit_errexit

readonly CHECKS="$BUNDLE/bootstrap/health/checks" WAIT_S="${FABRIC_WAIT_S:-120}"

# Prints the message of a check that finds the fabric not ready; the first job's checks report other faults.
not_ready() {
  local check said
  for check in 12-gpu-fabric 14-gpu-cuda; do
    said="$(timeout --signal=KILL 25 bash "$CHECKS/$check.sh" 2>/dev/null)" || true
    if [[ $said == *"not ready"* ]]; then
      printf '%s\n' "$said"
      return
    fi
  done
}

if [[ ${BOOTSTRAP_MOMENT:-start} == refresh ]]; then exit 0; fi
# shellcheck source=/dev/null
source "$TRAINING_ETC/partitions/$PARTITION.env"
said="$(not_ready)"
# SECONDS follows the wall clock, which the time service may set soon after boot.
read -r up _ </proc/uptime
readonly end=$((${up%.*} + WAIT_S))
while [[ -n $said ]] && ((${up%.*} < end)); do
  sleep 5
  said="$(not_ready)"
  read -r up _ </proc/uptime
done
if [[ -n $said ]]; then
  printf 'after %s s: %s\n' "$SECONDS" "$said" >&2
  exit 1
fi
printf 'the fabric is ready, after %s s\n' "$SECONDS" >&2
