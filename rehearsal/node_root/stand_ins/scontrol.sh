#!/usr/bin/env bash
#
# Plays Slurm's scontrol on a throw-away machine, where no slurmctld runs. The tests of the prolog have a real one.
set -euo pipefail

[[ "$*" == reconfigure ]] || {
  printf 'scontrol: this is not played: %s\n' "$*" >&2
  exit 1
}
