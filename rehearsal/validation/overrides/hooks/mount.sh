#!/usr/bin/env bash
# Prints that it ran, for the tests of overrides.
set -euo pipefail
printf '%s\n' "${1:-no argument}" >>/var/log/hook-of-the-user.log
