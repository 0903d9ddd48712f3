#!/usr/bin/env bash
#
# iptables and iptables-restore of a throw-away machine, which shares this machine's network and may not change its rules.
# A test of step 63 runs the real ones.
set -euo pipefail

if [[ $0 == *-restore ]]; then cat >/dev/null; fi
