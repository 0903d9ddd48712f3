#!/usr/bin/env bash
#
# Replaces curl: answers our scripts' requests for instance metadata, version 2; others go to the real curl.
set -euo pipefail

readonly TOKEN=a-token
case "$*" in
  *http://169.254.169.254/latest/api/token)
    [[ $* == *"--request PUT"* && $* == *X-aws-ec2-metadata-token-ttl-seconds:* ]] || exit 22
    printf '%s' "$TOKEN"
    ;;
  *http://169.254.169.254/latest/meta-data/public-keys/0/openssh-key)
    [[ $* == *"X-aws-ec2-metadata-token: $TOKEN"* ]] || exit 22
    printf 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIrehearsed training-key\n'
    ;;
  *http://169.254.169.254/*) exit 22 ;;
  *) exec /usr/bin/curl "$@" ;;
esac
