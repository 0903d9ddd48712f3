#!/usr/bin/env bash
#
# Authorizes the cluster's SSH key for the cluster's default user. With home=efs, /home is kept when a cluster is deleted.
# A later cluster has another key pair, but ParallelCluster keeps the authorized_keys of the first one (its cookbook
# copies the image's /home with --ignore-existing).
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT. Safe to run again: an existing key is not added
#   again. The file is written with the user's rights, since the user owns its folder.
# Nodes: HeadNode
# Required: no
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit

readonly METADATA=http://169.254.169.254/latest
# shellcheck disable=SC2016  # for the user's shell
readonly ADD='
umask 077
mkdir -p "$1/.ssh"
file="$1/.ssh/authorized_keys"
if grep -qF -- "$2" "$file" 2>/dev/null; then exit; fi
if [[ -s $file && -n $(tail -c 1 "$file") ]]; then echo >>"$file"; fi
printf "%s\n" "$2" >>"$file"
'

# ask PATH OPTION...: prints a value of the instance metadata.
ask() {
  curl --fail --silent --show-error --max-time 3 "${@:2}" "$METADATA/$1" || {
    printf 'the instance metadata has no %s: the SSH key of the cluster was not added\n' "$1" >&2
    return 1
  }
}

# shellcheck source=/dev/null
user="$(source "$TRAINING_ROOT/etc/parallelcluster/cfnconfig" && printf '%s' "${cfn_cluster_user:?is not in cfnconfig}")"
home="$(getent passwd "$user" | cut -d: -f6)"
token="$(ask api/token --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 60')"
# The type and the key; the rest of the line is a comment.
line="$(ask meta-data/public-keys/0/openssh-key --header "X-aws-ec2-metadata-token: $token")"
read -r kind key _ <<<"$line"
if [[ -z $key ]]; then
  printf "the instance metadata has '%s', which is not an SSH key: no key was added\n" "$line" >&2
  exit 1
fi
runuser -u "$user" -- bash -euo pipefail -c "$ADD" _ "$home" "$kind $key"
