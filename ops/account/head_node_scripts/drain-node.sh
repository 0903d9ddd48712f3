#!/usr/bin/env bash
#
# Drains a node with a reason, which sinfo -R shows. A node that drains already keeps its reason.
#
# Called by: trainctl check-nodes, on the head node as the cluster's user, who may use sudo there. Safe to run again.
# Arguments: NODE REASON
set -euo pipefail

readonly NODE="$1" REASON="$2"
scontrol="$(command -v scontrol)"
readonly scontrol
as_root=()
if ((EUID)); then as_root=(sudo -n); fi
if [[ $("$scontrol" show node --oneliner "$NODE") =~ \ State=[^\ ]*DRAIN ]]; then
  printf 'drains already\n'
  exit
fi
"${as_root[@]}" "$scontrol" update nodename="$NODE" state=drain reason="$REASON"
printf 'drained\n'
