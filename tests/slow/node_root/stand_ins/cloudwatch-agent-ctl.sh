#!/usr/bin/env bash
#
# Replaces the control program of CloudWatch's agent on a throw-away machine, for `append-config` only: it copies a
# config file to the agent's folder, and refuses one that is not JSON. It starts no agent.
#
#   amazon-cloudwatch-agent-ctl -a append-config -m ec2 -c file:PATH -s
set -euo pipefail

[[ "$*" =~ ^-a\ append-config\ -m\ ec2\ -c\ file:([^ ]+)\ -s$ ]] || {
  printf 'amazon-cloudwatch-agent-ctl: this is not emulated: %s\n' "$*" >&2
  exit 1
}
readonly config="${BASH_REMATCH[1]}" folder=/opt/aws/amazon-cloudwatch-agent/etc/amazon-cloudwatch-agent.d
jq -e .logs "$config" >/dev/null
mkdir -p "$folder"
cp "$config" "$folder/file_$(basename "$config")"
