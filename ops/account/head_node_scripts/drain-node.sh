#!/usr/bin/env bash
#
# Drains a node with a reason, which sinfo -R shows. A node that drains already keeps its reason.
#
# Called by: trainctl check-nodes, on the head node, as a user who may use sudo there. Safe to run again.
# Arguments: NODE REASON
set -euo pipefail

readonly NODE="$1" REASON="$2"
scontrol="$(command -v scontrol)"
readonly scontrol
as_root=()
if ((EUID)); then as_root=(sudo -n); fi
if ((EUID)) && ! sudo -n true 2>/dev/null; then
  printf '%s may not use sudo on the head node: ask an administrator to drain %s\n' "$(id -un)" "$NODE" >&2
  exit 1
fi
if [[ $("$scontrol" show node --oneliner "$NODE") =~ \ State=[^\ ]*DRAIN ]]; then
  printf 'drains already\n'
  exit
fi
"${as_root[@]}" "$scontrol" update nodename="$NODE" state=drain reason="$REASON"
printf 'drained\n'
