#!/usr/bin/env bash
#
# Replaces Slurm's scontrol on a throw-away machine, where no slurmctld runs. The tests of the prolog use a real one.
set -euo pipefail

[[ "$*" == reconfigure ]] || {
  printf 'scontrol: this is not emulated: %s\n' "$*" >&2
  exit 1
}
