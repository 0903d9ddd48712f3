#!/usr/bin/env bash
#
# Calls the real systemctl of a throw-away machine, where systemd does not run: units are really enabled and disabled
# (links of their [Install] section), and nothing is started.
set -euo pipefail

export SYSTEMD_OFFLINE=1
declare -a words=()
for word in "$@"; do
  case $word in
    --now) ;;
    daemon-reload | start | restart | reload | stop) exit 0 ;;
    *) words+=("$word") ;;
  esac
done
exec /usr/bin/systemctl "${words[@]}"
